// kafkajs, driven over a pipe: one command a line on stdin, one JSON object a line on stdout. The commands are those
// of card/session.py.
'use strict'

const readline = require('node:readline')
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')

const PATIENCE = 30000
const producers = new Map()
const members = new Map()
const admins = new Map()

class NoSuchCommandError extends Error {}

const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
// kafkajs tries again for a minute by itself, and hides behind that what a broker says
const kafka = server => new Kafka({ brokers: [server], logLevel: logLevel.NOTHING, retry: { retries: 8 } })

async function until(isDone, what) {
  for (const deadline = Date.now() + PATIENCE; !isDone(); await pause(20))
    if (Date.now() > deadline) throw new Error(what())
}

// Producers: `open` makes one with its transaction, if any.

const ofProducers = {
  async open(given) {
    const codec = given['config.compression.type']
    if (codec && codec !== 'gzip') throw new NoSuchCommandError('codecs other than gzip are packages of others')
    const transactionalId = given['config.transactional.id']
    const settings = { maxInFlightRequests: 1 }
    if (transactionalId || given['config.enable.idempotence']) settings.idempotent = true
    if (transactionalId) settings.transactionalId = transactionalId
    const timeout = given['config.transaction.timeout.ms']
    if (timeout) settings.transactionTimeout = Number(timeout)
    const producer = kafka(given.server).producer(settings)
    producers.set(given.producer, { producer, codec, transaction: null })
    if (!transactionalId) await producer.connect()
  },
  // InitProducerId is sent by the first transaction
  async init(of) {
    await of.producer.connect()
    await (await of.producer.transaction()).abort()
  },
  begin: async of => void (of.transaction = await of.producer.transaction()),
  commit: async of => of.transaction.commit(),
  abort: async of => of.transaction.abort(),
  async send(of, given) {
    const messages = given.records.split(',').map(word => {
      const at = word.indexOf(':')
      return { partition: Number(word.slice(0, at)), value: word.slice(at + 1) }
    })
    const compression = of.codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None
    const through = of.transaction && of.transaction.isActive() ? of.transaction : of.producer
    await through.send({ topic: given.topic, messages, compression })
  },
  'send-offsets': async (of, given) =>
    of.transaction.sendOffsets({ consumerGroupId: given.group, topics: [{ topic: given.topic, partitions: [at(given)] }] }),
  close: async of => of.producer.disconnect(),
}

// Members

const ofMembers = {
  async join(given) {
    if (given.strategy !== 'eager') throw new NoSuchCommandError('all its assignors are eager')
    if (given['config.group.instance.id']) throw new NoSuchCommandError('it has no static members')
    const consumer = kafka(given.server).consumer({
      groupId: given.group,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 100,
      readUncommitted: given['config.isolation.level'] !== 'read_committed',
    })
    const member = { consumer, group: given.group, server: given.server, assigned: [], given: [] }
    members.set(given.consumer, member)
    consumer.on(consumer.events.GROUP_JOIN, event => {
      member.assigned = event.payload.memberAssignment[given.topic] || []
    })
    consumer.on(consumer.events.REBALANCING, () => (member.assigned = []))
    await consumer.connect()
    await consumer.subscribe({ topics: [given.topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async each =>
        void member.given.push(`${each.partition}:${each.message.offset}:${each.message.value}`),
    })
  },
  async poll(of, given) {
    const count = Number(given.count)
    await until(() => of.given.length >= count, () => `${of.given.length} records of ${count}`)
    return of.given.splice(0, count)
  },
  async assigned(of) {
    await pause(50)
    return of.assigned.map(String).sort()
  },
  'commit-offset': async (of, given) => of.consumer.commitOffsets([{ topic: given.topic, ...at(given) }]),
  async committed(of, given) {
    const [found] = await (await adminOf(of.server)).fetchOffsets({ groupId: of.group, topics: [given.topic] })
    const [{ offset }] = found.partitions.filter(each => each.partition === Number(given.partition))
    return [offset === '-1' ? 'none' : offset]
  },
  async seek(of, given) {
    of.given.length = 0
    of.consumer.seek({ topic: given.topic, ...at(given) })
  },
  'read-again': async (of, given) => ofMembers.seek(of, given),
  leave: async of => of.consumer.disconnect(),
}

const at = given => ({ partition: Number(given.partition), offset: given.offset })

// Administration

async function adminOf(server) {
  if (!admins.has(server)) {
    const admin = kafka(server).admin()
    await admin.connect()
    admins.set(server, admin)
  }
  return admins.get(server)
}

const topic = given => ({ type: ConfigResourceTypes.TOPIC, name: given.topic })

const ofAdmins = {
  async 'create-topic'(admin, given) {
    const topics = [{ topic: given.topic, numPartitions: Number(given.partitions), replicationFactor: 1 }]
    if (!(await admin.createTopics({ topics }))) throw new Error('not created')
  },
  'delete-topic': async (admin, given) => admin.deleteTopics({ topics: [given.topic] }),
  'list-topics': async admin => admin.listTopics(),
  async 'describe-topic'(admin, given) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [given.topic] })
    return [topics[0].partitions.length]
  },
  async 'create-partitions'(admin, given) {
    await admin.createPartitions({ topicPartitions: [{ topic: given.topic, count: Number(given.count) }] })
  },
  async 'delete-records'(admin, given) {
    await admin.fetchTopicOffsets(given.topic) // else it does not know the topic
    await admin.deleteTopicRecords({ topic: given.topic, partitions: [at(given)] })
  },
  async 'list-offsets'(admin, given) {
    const found = await admin.fetchTopicOffsets(given.topic)
    const [{ low, high }] = found.filter(each => each.partition === Number(given.partition))
    return [low, high]
  },
  'list-groups': async admin => (await admin.listGroups()).groups.map(each => each.groupId),
  async 'describe-group'(admin, given) {
    const { groups } = await admin.describeGroups([given.group])
    return [groups[0].state.toLowerCase(), groups[0].members.length]
  },
  async 'group-offsets'(admin, given) {
    const [found] = await admin.fetchOffsets({ groupId: given.group, topics: [given.topic] })
    return found.partitions.filter(each => each.offset !== '-1').map(each => `${each.partition}:${each.offset}`)
  },
  'reset-offset': async (admin, given) =>
    admin.setOffsets({ groupId: given.group, topic: given.topic, partitions: [at(given)] }),
  'delete-group': async (admin, given) => void (await admin.deleteGroups([given.group])),
  async 'describe-config'(admin, given) {
    const resources = [{ ...topic(given), configNames: [given.name] }]
    const found = await admin.describeConfigs({ includeSynonyms: false, resources })
    return [found.resources[0].configEntries[0].configValue]
  },
  async 'alter-config'(admin, given) {
    const resources = [{ ...topic(given), configEntries: [{ name: given.name, value: given.value }] }]
    await admin.alterConfigs({ validateOnly: false, resources })
  },
  'describe-cluster': async admin => [(await admin.describeCluster()).brokers.length],
}

// kafkajs reads a partition in a group only
async function consume(given) {
  const [low, end] = (await ofAdmins['list-offsets'](await adminOf(given.server), given)).map(Number)
  const found = []
  let position = low
  const consumer = kafka(given.server).consumer({
    groupId: `${given.topic}-${Date.now()}-${Math.random()}`,
    maxWaitTimeInMs: 100,
    readUncommitted: given.level !== 'read_committed',
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [given.topic], fromBeginning: true })
  let quiet = Date.now()
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: true,
    eachBatch: async ({ batch }) => {
      if (batch.partition !== Number(given.partition)) return
      quiet = Date.now()
      found.push(...batch.messages.map(each => String(each.value)))
      position = Number(batch.lastOffset()) + 1
    },
  })
  // it does not say where it is behind control records and what was aborted
  const joined = Date.now()
  await until(
    () => (given.level === 'read_committed' && position >= end) || (Date.now() - joined > 1500 && Date.now() - quiet > 1500),
    () => `${found.length} records, end ${end}`
  )
  await consumer.disconnect()
  return found
}

async function run(words) {
  const given = Object.fromEntries(
    words.slice(1).map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)])
  )
  const command = words[0]
  if (command === 'consume') return consume(given)
  if (command === 'open') return ofProducers.open(given)
  if (command === 'join') return ofMembers.join(given)
  const [steps, of] = given.producer
    ? [ofProducers, producers.get(given.producer)]
    : given.consumer
      ? [ofMembers, members.get(given.consumer)]
      : [ofAdmins, await adminOf(given.server)]
  if (!steps[command]) throw new NoSuchCommandError(command)
  const found = await steps[command](of, given)
  if (steps === ofMembers && command === 'leave') members.delete(given.consumer)
  return found
}

// The innermost cause: kafkajs puts what a broker says into errors of its own.
function nameOf(error) {
  const parts = error.groups || error.partitions || [{}]
  const inner = error.cause || (error.errors && error.errors[0]) || parts[0].error
  if (inner && inner !== error) return nameOf(inner)
  return error.type || error.name
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer = { error: null }
    try {
      const values = await run(line.trim().split(' '))
      answer.values = Array.isArray(values) ? values.map(String) : []
    } catch (error) {
      const name = error instanceof NoSuchCommandError ? 'NoSuchCommandError' : nameOf(error)
      answer = { error: name, detail: String(error.message) }
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
  process.exit(0)
}

main()
