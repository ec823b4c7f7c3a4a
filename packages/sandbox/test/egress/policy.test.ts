import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { isPublicAddress } from '@sandlot/shared/node/addresses'
import { readAddressList, createPolicy, type EgressPolicyOptions } from '../../src/egress/policy.ts'
import { createBudget, DEFAULT_BUDGETS } from '../../src/egress/budget.ts'
import { EgressRefused } from '../../src/egress/refusal.ts'
import { readRules } from '../../src/egress/rules.ts'

const never = new AbortController().signal
const refusal = async (work: () => unknown): Promise<string> => {
  try {
    await work()
  } catch (error) {
    return error instanceof EgressRefused ? error.reason : String(error)
  }
  return 'allowed'
}

describe('the allow-list', () => {
  const rules = readRules([
    'allowed.test',
    '*.below.test',
    'port.test:8080',
    '*.both.test:8443',
    'bücher.test',
  ])

  test.each([
    ['allowed.test', 443, 'yes'],
    ['allowed.test', 80, 'yes'],
    ['allowed.test', 22, 'port'],
    ['allowed.test', 2375, 'port'],
    ['a.below.test', 443, 'yes'],
    ['a.b.below.test', 443, 'yes'],
    ['below.test', 443, 'no'],
    ['notbelow.test', 443, 'no'],
    ['allowed.test.evil.test', 443, 'no'],
    ['evilallowed.test', 443, 'no'],
    ['x.allowed.test', 443, 'no'],
    ['port.test', 8080, 'yes'],
    ['port.test', 443, 'port'],
    ['x.both.test', 8443, 'yes'],
    ['xn--bcher-kva.test', 443, 'yes'],
    // Looks like allowed.test with a Cyrillic first letter.
    ['xn--llowed-6fg.test', 443, 'no'],
  ] as const)('%s:%d → %s', (host, port, answer) => {
    expect(rules.allows({ host, port })).toBe(answer)
  })

  test('presets are lists of rules', () => {
    const both = readRules(['package-registries', 'git-hosts'])
    for (const host of ['registry.npmjs.org', 'pypi.org', 'github.com', 'gitlab.com'])
      expect(both.allows({ host, port: 443 })).toBe('yes')
    expect(both.allows({ host: 'example.org', port: 443 })).toBe('no')
  })

  test.each([
    '',
    '*',
    '*.',
    'http://a.test',
    'a.test/x',
    '10.0.0.1',
    '[::1]',
    'a.test:0',
    'a.test:x',
    'a.*.test',
    'u@a.test',
  ])('%j is no rule', (entry) => {
    expect(() => readRules([entry])).toThrow(expect.objectContaining({ code: 'invalid_arguments' }))
  })
})

describe('addresses', () => {
  test.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.9.9.9',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:169.254.169.254',
    '::ffff:8.8.8.8',
    '::127.0.0.1',
    '64:ff9b::a00:1',
    'fe80::1',
    'fe80::1%lo',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '2001::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    'fec0::1',
    '100::1',
    '',
    'localhost',
    '8.8.8',
    '0x7f.1',
    '2852039166',
  ])('%s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '172.15.0.1',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00:1450::1',
  ])('%s is', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test('exceptions are addresses and networks', () => {
    const has = readAddressList(['127.0.0.1', '10.1.0.0/16', 'fd00::/8'])
    expect(['127.0.0.1', '10.1.9.9', 'fd12::1'].map(has)).toEqual([true, true, true])
    expect(['127.0.0.2', '10.2.0.1', 'fe80::1', 'fd12::1%lo', 'x'].map(has)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ])
    for (const wrong of ['x', 'fe80::1%lo', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '::/129'])
      expect(() => readAddressList([wrong])).toThrow(expect.objectContaining({ code: 'invalid_arguments' }))
  })

  test('every private IPv4 address, written as a mapped one, is refused too', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(isPublicAddress(`::ffff:${address}`)).toBe(false)
      }),
      { numRuns: extent(200, 5_000) },
    )
  })
})

describe('resolving', () => {
  const at = { host: 'allowed.test', port: 443 }
  const policyWith = (answers: readonly string[][], allowAddresses: string[] = []) => {
    const left = [...answers]
    let asked = 0
    const policy = createPolicy({
      allow: ['allowed.test'],
      allowAddresses,
      resolve: async () => {
        asked += 1
        return left.shift() ?? []
      },
    })
    return { policy, asked: () => asked }
  }

  test('a public answer is what is dialled, and it is asked once', async () => {
    const { policy, asked } = policyWith([['1.1.1.1'], ['127.0.0.1']])
    expect(await policy.addresses(at, never)).toEqual(['1.1.1.1'])
    expect(asked()).toBe(1)
  })

  test('one private answer among public ones refuses all', async () => {
    for (const wrong of ['127.0.0.1', '::ffff:10.0.0.1', '169.254.169.254', 'fe80::1'])
      expect(await refusal(() => policyWith([['1.1.1.1', wrong]]).policy.addresses(at, never))).toBe(
        'private_address',
      )
  })

  test('no answer, and a resolver that fails', async () => {
    expect(await refusal(() => policyWith([]).policy.addresses(at, never))).toBe('unresolvable')
    const failing = createPolicy({ allow: [], resolve: () => Promise.reject(new Error('SERVFAIL')) })
    expect(await refusal(() => failing.addresses(at, never))).toBe('unresolvable')
  })

  test('a resolver that never answers ends with the signal', async () => {
    const slow = createPolicy({ allow: [], resolve: () => new Promise(() => {}) })
    const stop = new AbortController()
    const asked = refusal(() => slow.addresses(at, stop.signal))
    stop.abort(new EgressRefused('too_slow', 'x'))
    expect(await asked).toBe('too_slow')
  })

  test('credentials and budgets that cannot be are refused at the start', () => {
    const policies: EgressPolicyOptions[] = [
      { allow: [], credentials: { '10.0.0.1': { value: 'x' } } },
      { allow: [], credentials: { 'a.test': { value: 'x\r\ny: z' } } },
      { allow: [], credentials: { 'a.test': { header: 'Transfer-Encoding', value: 'chunked' } } },
      { allow: [], budgets: { bytes: 0 } },
      { allow: [], budgets: { connections: 100_000 } },
    ]
    for (const wrong of policies)
      expect(() => createPolicy(wrong)).toThrow(expect.objectContaining({ code: 'invalid_arguments' }))
  })

  test('a budget that is undefined is the default', () => {
    const { budgets } = createPolicy({ allow: [], budgets: { connections: undefined, bytes: 1 } })
    expect(budgets).toEqual({ ...DEFAULT_BUDGETS, bytes: 1 })
  })
})

describe('budgets', () => {
  test('connections at once, a minute, and bytes in a window; each comes back', async () => {
    let now = 0
    const budget = createBudget(
      { ...DEFAULT_BUDGETS, connections: 2, connectionsPerMinute: 4, bytes: 100, windowMs: 1_000 },
      () => now,
    )
    const leave = budget.enter()
    budget.enter()
    expect(await refusal(() => budget.enter())).toBe('too_many_connections')
    leave()
    leave()
    expect(budget.open).toBe(1)
    budget.enter()()
    budget.enter()()
    expect(await refusal(() => budget.enter())).toBe('too_many_connections')
    expect(budget.retryAfterMs('too_many_connections')).toBe(60_000)
    now = 60_000
    budget.enter()()
    budget.count(100)
    expect(await refusal(() => budget.count(1))).toBe('byte_budget')
    expect(await refusal(() => budget.enter())).toBe('byte_budget')
    now = 61_000
    budget.enter()()
    expect(budget.open).toBe(1)
  })
})
