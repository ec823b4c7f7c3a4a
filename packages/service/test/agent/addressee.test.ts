/** Choice of the agent for a request, and whether it may be sent again, for every method and act. */
import { methods } from '@agentclientprotocol/sdk'
import { agentRequest } from '@sandlot/shared/agent-requests'
import { EXT } from '@sandlot/shared/acp/meta'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { addresseeOf, isRepeatable } from '../../src/agent/addressee.ts'

const user = { id: 'u_ann', role: 'admin' }

function actsOf(params: z.ZodType): string[] {
  const ask: unknown = params instanceof z.ZodObject ? params.shape['ask'] : undefined
  if (!(ask instanceof z.ZodType)) return []
  const { oneOf = [] } = z.toJSONSchema(ask, { io: 'input', unrepresentable: 'any' })
  return oneOf.flatMap(({ properties }) => {
    const act = properties?.['do']
    return typeof act === 'object' && typeof act.const === 'string' ? [act.const] : []
  })
}

function requestsOf(method: string): { method: string; name: string; params: object }[] {
  const { params } = agentRequest(method) ?? {}
  if (params === undefined) return []
  const acts = actsOf(params)
  if (acts.length === 0) return [{ method, name: method, params: { user } }]
  return acts.map((act) => ({ method, name: `${method} ${act}`, params: { user, ask: { do: act } } }))
}

/** Every method, with each of its acts. */
const REQUESTS = Object.values(EXT).flatMap(requestsOf)

test('these requests, and no others, may be sent again', () => {
  const repeatable = REQUESTS.filter(({ method, params }) => isRepeatable(method, params))
  expect(repeatable.map(({ name }) => name.replace('_sandlot/', '')).toSorted()).toEqual([
    'approvals',
    'budgets',
    'cancel_call',
    'comment',
    'configuration',
    'deployment_rules list',
    'files list',
    'files read',
    'files search',
    'instructions',
    'mark_chats',
    'mcp_servers list',
    'metrics',
    'models list',
    'overview view',
    'ports connect',
    'ports list',
    'put_person',
    'rename',
    'retention get',
    'retention preview',
    'rules asked',
    'rules list',
    'rules preview',
    'sandbox jobs',
    'sandbox output',
    'sandbox view',
    'sandboxes list',
    'sandboxes use',
    'secrets list',
    'settings effective',
    'settings get',
    'settings list',
    'settings own',
    'shares list',
    'snapshots list',
    'status',
    'terminals attach',
    'terminals list',
    'tool_stats',
    'unqueue',
  ])
  expect(REQUESTS.length).toBeGreaterThan(repeatable.length * 1.5)
  expect(isRepeatable(methods.agent.session.load, {})).toBe(true)
  expect(isRepeatable(methods.agent.session.prompt, {})).toBe(false)
})

test('a request is for the agent of the asking user, but for three of another user', () => {
  for (const { method, params } of REQUESTS)
    expect(addresseeOf(method, { ...params, sessionId: 's_1' })).toEqual({ session: 's_1', person: 'u_ann' })
  expect(addresseeOf(EXT.sandboxes, { user, ask: { do: 'stop', userId: 'u_bob' } }).person).toBe('u_bob')
  expect(addresseeOf(EXT.sandboxes, { user, ask: { do: 'use', userIds: ['u_bob'] } }).person).toBe('u_bob')
  expect(addresseeOf(EXT.settings, { user, ask: { do: 'effective', userId: 'u_bob' } }).person).toBe('u_ann')
  expect(addresseeOf(EXT.putPerson, { userId: 'u_bob' }).person).toBe('u_bob')
  expect(addresseeOf(EXT.removePerson, { userId: 'u_bob' }).person).toBe('u_bob')
  expect(addresseeOf(EXT.status, {}).person).toBeUndefined()
  expect(addresseeOf('session/new', { _meta: { sandlot: { user } } }).person).toBe('u_ann')
})
