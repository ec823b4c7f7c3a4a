/** Rules about a host at the egress proxy. */
import type { Rule, RuleEffect } from '@sandlot/shared/chat/rules'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { extent } from '../../../../test/campaign.ts'
import { hostRules } from '../../src/approval/hosts.ts'

const at = { host: 'api.example.org', port: 443 }
const rule = (id: string, effect: RuleEffect, host: string, more: Partial<Rule> = {}): Rule => ({
  id,
  effect,
  match: { host },
  origin: 'user',
  createdAt: 1,
  ...more,
})
const ONCE = { endsWith: { sessionId: 's', promptId: 'p' } }

test.each<[string, Rule[], boolean, ReturnType<ReturnType<typeof hostRules>>]>([
  ['no rule', [], true, undefined],
  ['allowed', [rule('a', 'allow', 'api.example.org')], true, { decision: 'allow', ruleId: 'a' }],
  ['allowed below', [rule('a', 'allow', '*.example.org:443')], true, { decision: 'allow', ruleId: 'a' }],
  ['allowed at another port', [rule('a', 'allow', 'api.example.org:8443')], true, undefined],
  ['another name', [rule('a', 'allow', 'example.org')], true, undefined],
  ['allowed where nobody may ask', [rule('a', 'allow', 'api.example.org')], false, undefined],
  [
    'denied where nobody may ask',
    [rule('d', 'deny', 'api.example.org')],
    false,
    { decision: 'deny', ruleId: 'd' },
  ],
  [
    'asks',
    [rule('a', 'allow', 'api.example.org'), rule('q', 'ask', '*.example.org')],
    true,
    { decision: 'ask', ruleId: 'q' },
  ],
  [
    'asked and allowed once',
    [rule('q', 'ask', '*.example.org'), rule('o', 'allow', 'api.example.org:443', ONCE)],
    true,
    { decision: 'allow', ruleId: 'o' },
  ],
  ['a rule about something else', [{ ...rule('t', 'deny', ''), match: { tool: '*' } }], true, undefined],
])('%s', (_, rules, mayAsk, expected) => {
  expect(hostRules(rules, mayAsk)(at)).toEqual(expected)
})

test('a name that is not public is opened by no rule, and may be denied by one', () => {
  for (const host of ['db.internal', 'localhost', '10.0.0.1']) {
    const where = { host, port: 443 }
    expect(hostRules([rule('a', 'allow', host)], true)(where)).toBeUndefined()
  }
  const denied = hostRules([rule('d', 'deny', 'db.internal')], true)({ host: 'db.internal', port: 80 })
  expect(denied).toEqual({ decision: 'deny', ruleId: 'd' })
})

test('one rule that denies is enough, whatever else there is and in whatever order', () => {
  const effect = fc.constantFrom<RuleEffect>('allow', 'ask', 'deny')
  const host = fc.constantFrom(
    'api.example.org',
    '*.example.org',
    'api.example.org:443',
    'API.example.org.',
    'other.org',
  )
  const made = fc.array(fc.record({ effect, host, once: fc.boolean() }), { maxLength: 8 })
  fc.assert(
    fc.property(made, fc.boolean(), (drawn, mayAsk) => {
      const rules = drawn.map((one, n) => rule(`r${n}`, one.effect, one.host, one.once ? ONCE : {}))
      const decision = hostRules(rules, mayAsk)(at)?.decision
      const denied = rules.some(
        (one) => one.effect === 'deny' && 'host' in one.match && one.match.host !== 'other.org',
      )
      expect(decision === 'deny').toBe(denied)
      if (decision === 'allow') expect(mayAsk && rules.some((one) => one.effect === 'allow')).toBe(true)
    }),
    { numRuns: extent(200, 5_000) },
  )
})
