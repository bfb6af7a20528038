// Confluent's JavaScript client against a registry: field-level encryption with the local KMS, and associations.
// Argument: {url, secret, schema, rule, received: {topic, payload}}. Prints one JSON object.
const {
  AvroDeserializer, AvroSerializer, FieldEncryptionExecutor, LocalKmsDriver, SchemaRegistryClient, SerdeType,
} = require('@confluentinc/schemaregistry');

async function main() {
  const given = JSON.parse(process.argv[2]);
  LocalKmsDriver.register();
  FieldEncryptionExecutor.register();
  const client = new SchemaRegistryClient({ baseURLs: [given.url] });
  const conf = { ruleConfig: { secret: given.secret } };
  const user = { id: 2, name: 'Grace Hopper' };

  await client.register('js-users-value', { schema: given.schema, schemaType: 'AVRO', ruleSet: { domainRules: [given.rule] } });
  const serializer = new AvroSerializer(client, SerdeType.VALUE, { ...conf, useLatestVersion: true });
  const deserializer = new AvroDeserializer(client, SerdeType.VALUE, conf);
  const payload = await serializer.serialize('js-users', user);
  const shown = { payload: payload.toString('base64') };
  shown.own = await deserializer.deserialize('js-users', payload);
  shown.received = await deserializer.deserialize(given.received.topic, Buffer.from(given.received.payload, 'base64'));

  await client.register('shared-subject', { schema: given.schema, schemaType: 'AVRO' });
  shown.created = await client.createAssociation({
    resourceName: 'js-topic', resourceNamespace: 'lkc-js', resourceId: 'js-id', resourceType: 'topic',
    associations: [{ subject: 'shared-subject', associationType: 'value', lifecycle: 'WEAK' }],
  });
  shown.found = await client.getAssociationsByResourceName('js-topic', '-', 'topic', ['value'], null, 0, -1);
  const associated = new AvroSerializer(client, SerdeType.VALUE, { useLatestVersion: true, autoRegisterSchemas: false });
  shown.associated = (await associated.serialize('js-topic', user)).readInt32BE(1);
  await client.deleteAssociations('js-id', 'topic', ['value'], false);
  shown.left = await client.getAssociationsByResourceName('js-topic', 'lkc-js', 'topic', [], null, 0, -1);
  console.log(JSON.stringify(shown));
}

main().catch((error) => { console.error(error); process.exit(1); });
