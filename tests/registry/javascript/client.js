// What a JavaScript application does with a registry: register, encode, decode, evolve. Prints what it got as JSON.
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

const [host, subject] = process.argv.slice(2)
const registry = new SchemaRegistry({ host })
const record = (fields) => ({
  type: SchemaType.AVRO,
  schema: JSON.stringify({ type: 'record', name: 'Order', namespace: 'shop', fields }),
})
const id = { name: 'id', type: 'long' }

async function main () {
  const first = await registry.register(record([id]), { subject })
  const again = await registry.register(record([id]), { subject })
  const payload = await registry.encode(first.id, { id: 7 })
  const second = await registry.register(record([id, { name: 'note', type: 'string', default: '' }]), { subject })
  let refused = null
  try {
    await registry.register(record([id, { name: 'sum', type: 'double' }]), { subject })
  } catch (error) {
    refused = error.message
  }
  const json = { type: SchemaType.JSON, schema: JSON.stringify({ type: 'object', properties: { id: { type: 'integer' } } }) }
  const proto = { type: SchemaType.PROTOBUF, schema: 'syntax = "proto3"; package shop; message Order { int64 id = 1; }' }
  const others = []
  for (const [name, schema] of [['json', json], ['proto', proto]]) {
    const registered = await registry.register(schema, { subject: `${subject}-${name}` })
    others.push(await registry.decode(await registry.encode(registered.id, { id: 7 })))
  }
  console.log(JSON.stringify({
    same: first.id === again.id,
    grew: second.id > first.id,
    latest: await registry.getLatestSchemaId(subject) === second.id,
    read: await registry.decode(payload),
    refused,
    others,
  }))
}

main().catch((error) => { console.error(error); process.exit(1) })
