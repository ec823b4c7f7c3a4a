/** Nodes that a volume can be used on, as the scheduler of a cluster judges them. */
import { expect, test } from 'vitest'

import { canBeOn, type PersistentVolume } from '../../../src/backends/kubernetes/node-affinity.ts'

type Term = NonNullable<
  NonNullable<PersistentVolume['spec']['nodeAffinity']>['required']
>['nodeSelectorTerms'][number]
type Requirement = NonNullable<Term['matchExpressions']>[number]

const node = { metadata: { name: 'node1', labels: { zone: 'a', cores: '8' } } }
const volume = (...nodeSelectorTerms: Term[]): PersistentVolume => ({
  metadata: { name: 'v' },
  spec: { nodeAffinity: { required: { nodeSelectorTerms } } },
})

test.each<[expected: boolean, ...Requirement[]]>([
  [true, { key: 'zone', operator: 'In', values: ['a', 'b'] }],
  [false, { key: 'zone', operator: 'In', values: ['b'] }],
  [false, { key: 'rack', operator: 'In', values: ['b'] }],
  [false, { key: 'zone', operator: 'NotIn', values: ['a'] }],
  [true, { key: 'rack', operator: 'NotIn', values: ['a'] }],
  [true, { key: 'zone', operator: 'Exists' }],
  [false, { key: 'rack', operator: 'Exists' }],
  [false, { key: 'zone', operator: 'DoesNotExist' }],
  [true, { key: 'cores', operator: 'Gt', values: ['4'] }],
  [false, { key: 'cores', operator: 'Lt', values: ['4'] }],
  [false, { key: 'zone', operator: 'Exists' }, { key: 'rack', operator: 'Exists' }],
])('%s: %j', (expected, ...matchExpressions) => {
  expect(canBeOn(volume({ matchExpressions }), node)).toBe(expected)
})

test('one of several terms is enough, and an empty one matches nothing', () => {
  const isNode = (name: string): Term => ({
    matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }],
  })
  expect(canBeOn(volume(isNode('node2'), isNode('node1')), node)).toBe(true)
  expect(canBeOn(volume(isNode('node2')), node)).toBe(false)
  expect(canBeOn(volume({}), node)).toBe(false)
  expect(canBeOn({ metadata: { name: 'v' }, spec: {} }, node)).toBe(true)
})
