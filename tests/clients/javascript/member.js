'use strict'
// A member of a group on kafkajs; tests/rebalance/members.py describes its lines.
// The library has no word for giving partitions up: it tells that a rebalance has begun, and what it was assigned.
const { Kafka, AssignerProtocol, PartitionAssigners, logLevel } = require('kafkajs')

const { MemberMetadata, MemberAssignment } = AssignerProtocol
const options = JSON.parse(process.argv[2])
let owned = []

function tell(event, fields) {
  const at_us = Math.round((performance.timeOrigin + performance.now()) * 1000)
  process.stdout.write(JSON.stringify({ event, at_us, ...fields }) + '\n')
}

function giveUp() {
  if (owned.length > 0) tell('revoked', { partitions: owned })
  owned = []
}

// An assigner that no library has: the member that names the highest number gets everything.
const priority = ({ cluster }) => ({
  name: 'priority',
  version: 0,
  async assign({ members, topics }) {
    const number = member => Number(MemberMetadata.decode(member.memberMetadata).userData.toString())
    const best = members.reduce((a, b) => (number(b) > number(a) ? b : a))
    const everything = Object.fromEntries(
      topics.map(topic => [topic, cluster.findTopicPartitionMetadata(topic).map(each => each.partitionId)])
    )
    return members.map(member => ({
      memberId: member.memberId,
      memberAssignment: MemberAssignment.encode({ version: 0, assignment: member === best ? everything : {} }),
    }))
  },
  protocol({ topics }) {
    const userData = Buffer.from(String(options.priority))
    return { name: 'priority', metadata: MemberMetadata.encode({ version: 0, topics, userData }) }
  },
})

const ASSIGNERS = { RoundRobinAssigner: PartitionAssigners.roundRobin, priority }

async function readAndCommit(consumer, { topic, partition, messages }) {
  const [first, last] = [messages[0].offset, messages[messages.length - 1].offset].map(Number)
  tell('read', { spans: [[topic, partition, first, last]] })
  try {
    await consumer.commitOffsets([{ topic, partition, offset: String(last + 1) }])
    tell('committed', { offsets: [[topic, partition, last + 1]] })
  } catch (error) {
    tell('failed', { what: 'commit', message: String(error) })
    throw error
  }
}

async function main() {
  const kafka = new Kafka({ clientId: options.name, brokers: [options.bootstrap], logLevel: logLevel.WARN })
  const consumer = kafka.consumer({
    groupId: options.group,
    sessionTimeout: options.session_timeout_ms,
    heartbeatInterval: options.heartbeat_ms,
    metadataMaxAge: options.metadata_age_ms,
    maxWaitTimeInMs: 200,
    partitionAssigners: options.assignors.map(name => ASSIGNERS[name]),
  })
  consumer.on(consumer.events.REBALANCING, giveUp)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    giveUp()
    owned = Object.entries(payload.memberAssignment).flatMap(([topic, ids]) => ids.map(id => [topic, id]))
    tell('assigned', { partitions: owned })
  })
  await consumer.connect()
  await consumer.subscribe({ topics: options.topics, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatch: ({ batch }) => readAndCommit(consumer, batch) })
  process.stdin.resume()
  process.stdin.on('end', async () => {
    await consumer.stop()
    giveUp()
    await consumer.disconnect()
  })
}

// Its warnings go to the standard output otherwise.
console.log = console.info = console.warn = console.error
main()
