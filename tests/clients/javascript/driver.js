'use strict'
// kafkajs behind the test clients' JSON lines; tests/clients/drivers.py describes the operations.
// Its public consumer reads in groups only, so reading one partition goes through the cluster object that the consumer
// itself is built on.
const readline = require('readline')
const lz4 = require('lz4-napi')
const snappy = require('snappyjs')
const zstd = require('@bokuweb/zstd-wasm')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const createSocketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger } = require('kafkajs/src/loggers')
const { createErrorFromCode } = require('kafkajs/src/protocol/error')

const CONSUME_MS_MAX = 15_000
const UNPACKED_BYTES_MAX = 16 << 20
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}
const RESOURCES = { topic: ConfigResourceTypes.TOPIC, broker: ConfigResourceTypes.BROKER }
const ACKS = { 0: 0, 1: 1, all: -1 }
const TOPIC_ALREADY_EXISTS = 36

// The framing that Java's snappy library writes around its blocks.
const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])

function unsnappy(buffer) {
  if (!buffer.subarray(0, 8).equals(XERIAL_MAGIC)) return Buffer.from(snappy.uncompress(buffer))
  const blocks = []
  for (let at = 16; at < buffer.length; ) {
    const size = buffer.readInt32BE(at)
    blocks.push(Buffer.from(snappy.uncompress(buffer.subarray(at + 4, at + 4 + size))))
    at += 4 + size
  }
  return Buffer.concat(blocks)
}

CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async encoder => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async buffer => unsnappy(buffer),
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrame(encoder.buffer),
  decompress: async buffer => lz4.decompressFrame(buffer),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer, { defaultHeapSize: UNPACKED_BYTES_MAX })),
})

const bytes = base64 => (base64 === null ? null : Buffer.from(base64, 'base64'))
const text = buffer => (buffer === null || buffer === undefined ? null : buffer.toString('base64'))

function headersToObject(headers) {
  const object = {}
  for (const [name, value] of headers) (object[name] ||= []).push(bytes(value))
  return object
}

function headersToList(object) {
  return Object.entries(object).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map(value => [name, text(value)])
  )
}

class Driver {
  constructor(bootstrap) {
    const retry = { initialRetryTime: 100, retries: 5 }
    this.kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry })
    this.admin = this.kafka.admin()
    this.producers = new Map()
    this.cluster = new Cluster({
      logger: createLogger({ level: logLevel.NOTHING, logCreator: () => () => {} }),
      socketFactory: createSocketFactory(),
      brokers: [bootstrap],
      clientId: 'kafkajs',
      connectionTimeout: 5000,
      metadataMaxAge: 300000,
      allowAutoTopicCreation: false,
      retry,
    })
  }

  async connect() {
    await zstd.init()
    await this.admin.connect()
    await this.cluster.connect()
  }

  async produce({ topic, acks, codec, idempotent, records }) {
    const key = String(idempotent)
    if (!this.producers.has(key)) {
      const producer = this.kafka.producer({ idempotent, maxInFlightRequests: 1, createPartitioner: () => ({ message }) => message.partition })
      await producer.connect()
      this.producers.set(key, producer)
    }
    const messages = records.map(record => ({
      partition: record.partition,
      key: bytes(record.key),
      value: bytes(record.value),
      headers: headersToObject(record.headers),
      timestamp: record.timestamp === null ? undefined : String(record.timestamp),
    }))
    const answers = await this.producers.get(key).send({ topic, acks: ACKS[acks], compression: CODECS[codec], messages })
    const next = new Map(answers.map(answer => [answer.partition, Number(answer.baseOffset ?? -1)]))
    return { offsets: records.map(({ partition }) => this.takeOffset(next, partition)) }
  }

  takeOffset(next, partition) {
    const offset = next.get(partition) ?? -1
    if (offset >= 0) next.set(partition, offset + 1)
    return offset
  }

  async consume({ topic, partition, offset, count }) {
    await this.cluster.addTargetTopic(topic)
    const records = []
    const deadline = Date.now() + CONSUME_MS_MAX
    let next = BigInt(offset)
    while (records.length < count) {
      if (Date.now() > deadline) throw new Error(`read ${records.length} of ${count} records`)
      for (const message of await this.fetch(topic, partition, next)) {
        // A fetch starts with the whole batch that holds the offset asked for.
        if (BigInt(message.offset) < next || records.length === count) continue
        next = BigInt(message.offset) + 1n
        records.push({
          offset: Number(message.offset),
          timestamp: Number(message.timestamp),
          key: text(message.key),
          value: text(message.value),
          headers: headersToList(message.headers || {}),
        })
      }
    }
    return { records }
  }

  async fetch(topic, partition, offset) {
    const [{ leader }] = this.cluster.findTopicPartitionMetadata(topic).filter(found => found.partitionId === partition)
    const broker = await this.cluster.findBroker({ nodeId: leader })
    const answer = await broker.fetch({
      maxWaitTime: 500,
      isolationLevel: 0,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(offset), maxBytes: 1 << 20 }] }],
    })
    const found = answer.responses[0].partitions[0]
    if (found.errorCode) throw createErrorFromCode(found.errorCode)
    return found.messages
  }

  async list_offset({ topic, partition, at }) {
    if (typeof at === 'number') {
      const found = await this.admin.fetchTopicOffsetsByTimestamp(topic, at)
      return { offset: Number(found.find(entry => entry.partition === partition).offset) }
    }
    const found = (await this.admin.fetchTopicOffsets(topic)).find(entry => entry.partition === partition)
    return { offset: Number(at === 'earliest' ? found.low : found.high) }
  }

  async create_topic({ topic, partitions, replication_factor, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const wanted = { topic, numPartitions: partitions, replicationFactor: replication_factor, configEntries }
    if (!(await this.admin.createTopics({ topics: [wanted] }))) throw createErrorFromCode(TOPIC_ALREADY_EXISTS)
    return {}
  }

  async delete_topic({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
    return {}
  }

  async create_partitions({ topic, total }) {
    await this.admin.createPartitions({ topicPartitions: [{ topic, count: total }] })
    return {}
  }

  async describe_topic({ topic }) {
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] })
    const partitions = topics[0].partitions.map(({ partitionId, leader }) => ({ id: partitionId, leader }))
    return { partitions: partitions.sort((one, other) => one.id - other.id) }
  }

  async list_topics() {
    return { topics: await this.admin.listTopics() }
  }

  async describe_configs({ resource, name }) {
    const { resources } = await this.admin.describeConfigs({ resources: [{ type: RESOURCES[resource], name }] })
    return { configs: Object.fromEntries(resources[0].configEntries.map(entry => [entry.configName, entry.configValue])) }
  }

  async alter_configs({ resource, name, set }) {
    const configEntries = Object.entries(set).map(([key, value]) => ({ name: key, value }))
    await this.admin.alterConfigs({ resources: [{ type: RESOURCES[resource], name, configEntries }] })
    return {}
  }

  async delete_records({ topic, partition, before }) {
    // kafkajs looks for the leader in what it knows of the topic, and learns that only afterwards.
    await this.admin.fetchTopicOffsets(topic)
    await this.admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return { low_watermark: (await this.list_offset({ topic, partition, at: 'earliest' })).offset }
  }

  async describe_cluster() {
    const { brokers, controller, clusterId } = await this.admin.describeCluster()
    return { brokers: brokers.map(({ nodeId, host, port }) => ({ id: nodeId, host, port })), controller, cluster_id: clusterId }
  }
}

function describe(failure) {
  const chain = []
  for (let error = failure; error; error = error.cause || error.originalError || (error.errors && error.errors[0])) chain.push(error)
  const coded = chain.find(error => typeof error.code === 'number') || failure
  return { code: typeof coded.code === 'number' ? coded.code : null, name: coded.type || coded.name, message: coded.message }
}

async function main() {
  const driver = new Driver(process.argv[2])
  let connected = null
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line)
    let reply
    try {
      await (connected ||= driver.connect())
      reply = { ok: await driver[request.op](request) }
    } catch (failure) {
      reply = { error: describe(failure) }
    }
    process.stdout.write(JSON.stringify(reply) + '\n')
  }
  process.exit(0)
}

main()
