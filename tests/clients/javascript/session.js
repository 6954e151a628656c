'use strict'
// A session of kafkajs on a secured listener; tests/clients/sessions.py describes the requests.
const fs = require('fs')
const readline = require('readline')
const { setTimeout: pause } = require('timers/promises')
const { Kafka, logLevel } = require('kafkajs')

const STEP_MS_MAX = 20_000
const RETRY = { initialRetryTime: 20, retries: 5 }
// How long before its end a login is repeated. The library's own ten seconds are more than the tests' logins last.
const REAUTHENTICATION_THRESHOLD_MS = 1_000

function tls({ protocol, trusted, certificate }) {
  if (!protocol.includes('SSL')) return false
  const own = certificate ? fs.readFileSync(certificate) : undefined
  return { ca: [fs.readFileSync(trusted)], key: own, cert: own }
}

function login({ mechanism, user, password, token }) {
  if (mechanism === null) return undefined
  if (mechanism === 'OAUTHBEARER') return { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: token }) }
  return { mechanism: mechanism.toLowerCase(), username: user, password }
}

// What was read, and a promise that is kept with the next record, or broken with what crashed the consumer.
class Inbox {
  constructor() {
    this.values = []
    this.failure = null
    this.notify = () => {}
  }

  async take(count) {
    const deadline = Date.now() + STEP_MS_MAX
    while (this.values.length < count) {
      if (this.failure) throw this.failure
      if (Date.now() > deadline) throw new Error(`read ${this.values.length} of ${count} records`)
      await Promise.race([new Promise(resolve => (this.notify = resolve)), pause(500, undefined, { ref: false })])
    }
    return this.values.splice(0, count)
  }
}

async function session(request) {
  const kafka = new Kafka({
    brokers: [request.bootstrap],
    ssl: tls(request),
    sasl: login(request),
    reauthenticationThreshold: REAUTHENTICATION_THRESHOLD_MS,
    logLevel: logLevel.NOTHING,
    retry: RETRY,
  })
  const producer = kafka.producer()
  const consumer = kafka.consumer({ groupId: request.group, maxWaitTimeInMs: 100 })
  const inbox = new Inbox()
  const read = []
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    inbox.failure = payload.error
    inbox.notify()
  })
  try {
    await producer.connect()
    for (const values of request.batches) {
      await producer.send({ topic: request.topic, messages: values.map(value => ({ value })) })
      if (read.length === 0) {
        await consumer.connect()
        await consumer.subscribe({ topic: request.topic, fromBeginning: true })
        await consumer.run({
          eachMessage: async ({ message }) => {
            inbox.values.push(message.value.toString())
            inbox.notify()
          },
        })
      }
      read.push(...(await inbox.take(values.length)))
      await pause(request.pause_ms)
    }
  } finally {
    await consumer.disconnect()
    await producer.disconnect()
  }
  return { read }
}

// What was tried again and again is told by its cause.
function describe(failure) {
  const cause = failure.cause || failure
  return { code: typeof cause.code === 'number' ? cause.code : null, name: cause.type || cause.name, message: cause.message }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let reply
    try {
      reply = { ok: await session(JSON.parse(line)) }
    } catch (failure) {
      reply = { error: describe(failure) }
    }
    process.stdout.write(JSON.stringify(reply) + '\n')
  }
  process.exit(0)
}

main()
