/** A user's own rules in the egress proxy: real sockets on both sides of it, without a sandbox. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'

import { afterEach, expect, test } from 'vitest'

import type { EgressOptions } from '../../src/egress/egress.ts'
import { createOpenConnections } from '../../src/egress/open-connections.ts'
import type { HostRules } from '../../src/egress/user-rules.ts'
import { startTcp, type WatchedEgress, watchedEgress } from '../support/egress-fixture.ts'

type HostRuling = NonNullable<ReturnType<HostRules>>

const WAIT = { timeout: 20_000, interval: 5 }
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

interface Way {
  egress: WatchedEgress
  /** A proxy's answer to a CONNECT, and the tunnel if there is one. */
  tunnel(authority: string): Promise<{ status: number; said: string; socket: Socket }>
}

async function open(options: Partial<EgressOptions>, userId = 'ann'): Promise<Way> {
  const egress = watchedEgress({ recheckMs: 5, ...options })
  const proxy = createServer({ allowHalfOpen: true }, (socket) => void egress.forUser(userId).serve(socket))
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  cleanups.push(async () => proxy.close())
  const { port } = proxy.address() as AddressInfo
  return {
    egress,
    async tunnel(authority) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      cleanups.push(async () => socket.destroy())
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`)
      const [first] = (await once(socket, 'data')) as [Buffer]
      const status = Number(first.toString().split(' ')[1])
      const said = status === 200 ? '' : first.toString() + (await text(socket))
      return { status, said, socket }
    },
  }
}

async function echo(): Promise<number> {
  const server = await startTcp((socket) => socket.pipe(socket))
  cleanups.push(() => server.close())
  return server.port
}

/**
 * Rules that a test changes while connections are open, and which cannot be read the next `failing`
 * times.
 */
function changing(first: Record<string, HostRuling> = {}) {
  const state = { rules: first, failing: 0, read: 0 }
  const rulesOf: NonNullable<EgressOptions['rulesOf']> = async () => {
    if (state.failing > 0) {
      state.failing -= 1
      throw new Error('the store does not answer')
    }
    state.read += 1
    const { rules } = state
    return ({ host }) => rules[host]
  }
  return { state, rulesOf }
}

test('a rule that denies wins over the list, and the record names it', async () => {
  const port = await echo()
  const { rulesOf } = changing({ 'listed.test': { decision: 'deny', ruleId: 'rule_no' } })
  const { egress, tunnel } = await open({ allow: [`listed.test:${port}`, `other.test:${port}`], rulesOf })
  const { status, said } = await tunnel(`listed.test:${port}`)
  expect(status).toBe(403)
  expect(said).toContain('X-Sandlot-Refused: denied')
  expect(said).toContain(`a rule denies listed.test:${port}`)
  await expect
    .poll(() => egress.audits, WAIT)
    .toMatchObject([
      { decision: 'refused', reason: 'denied', ruleId: 'rule_no', host: 'listed.test', userId: 'ann' },
    ])
  expect(egress.events).toMatchObject([{ reason: 'denied', host: 'listed.test' }])
  expect(egress.asked).toEqual([])
  expect((await tunnel(`other.test:${port}`)).status).toBe(200)
})

test('a rule that allows opens a host beside the list; one that asks keeps a listed one closed', async () => {
  const port = await echo()
  const { rulesOf } = changing({
    'granted.test': { decision: 'allow', ruleId: 'rule_yes' },
    'listed.test': { decision: 'ask', ruleId: 'rule_ask' },
  })
  const { egress, tunnel } = await open({ allow: [`listed.test:${port}`], rulesOf })
  const { status, socket } = await tunnel(`granted.test:${port}`)
  expect(status).toBe(200)
  socket.end('there and back')
  expect(await text(socket)).toBe('there and back')
  await expect.poll(() => egress.audits, WAIT).toMatchObject([{ decision: 'allowed', ruleId: 'rule_yes' }])
  expect((await tunnel(`listed.test:${port}`)).said).toContain('there is no approval')
  expect((await tunnel(`unknown.test:${port}`)).status).toBe(403)
})

test('a private address stays out of reach, whatever a rule allows', async () => {
  const port = await echo()
  const { rulesOf } = changing({ 'granted.test': { decision: 'allow', ruleId: 'rule_yes' } })
  const { tunnel } = await open({ rulesOf, allowAddresses: [] })
  expect((await tunnel(`granted.test:${port}`)).said).toContain('private_address')
})

test('a revoked rule ends the connections that it let through, and no others', async () => {
  const port = await echo()
  const { rulesOf, state } = changing({ 'granted.test': { decision: 'allow', ruleId: 'rule_yes' } })
  const { egress, tunnel } = await open({ allow: [`listed.test:${port}`], rulesOf })
  const granted = await tunnel(`granted.test:${port}`)
  const listed = await tunnel(`listed.test:${port}`)
  const closed = once(granted.socket, 'close')
  state.rules = {}
  await closed
  expect(egress.audits).toMatchObject([{ decision: 'refused', reason: 'not_allowed', host: 'granted.test' }])
  expect((await tunnel(`granted.test:${port}`)).status).toBe(403)
  const closedToo = once(listed.socket, 'close')
  state.rules = { 'listed.test': { decision: 'deny', ruleId: 'rule_no' } }
  await closedToo
  expect(egress.audits.at(-1)).toMatchObject({ reason: 'denied', ruleId: 'rule_no', host: 'listed.test' })
})

test('a rule that is revoked while the server is being reached lets nothing through', async () => {
  const port = await echo()
  const { rulesOf, state } = changing({ 'granted.test': { decision: 'allow', ruleId: 'rule_yes' } })
  const resolving = Promise.withResolvers<undefined>()
  const resolved = Promise.withResolvers<string[]>()
  const { tunnel } = await open({
    rulesOf,
    resolve: () => {
      resolving.resolve(undefined)
      return resolved.promise
    },
  })
  const asked = tunnel(`granted.test:${port}`)
  await resolving.promise
  state.rules = {}
  expect((await asked).status).toBe(403)
  resolved.resolve(['127.0.0.1'])
})

test('while the rules cannot be read nothing new is reached', async () => {
  const port = await echo()
  const { rulesOf, state } = changing()
  const { egress, tunnel } = await open({ allow: [`listed.test:${port}`], rulesOf })
  state.failing = Infinity
  expect((await tunnel(`listed.test:${port}`)).status).toBe(502)
  await expect.poll(() => egress.audits, WAIT).toMatchObject([{ decision: 'failed', reason: 'broken' }])
})

test('rules that cannot be read for a few looks end no connection; for five in a row, all that are open', async () => {
  const port = await echo()
  const { rulesOf, state } = changing()
  const { egress, tunnel } = await open({ allow: [`listed.test:${port}`], rulesOf })
  const { socket } = await tunnel(`listed.test:${port}`)
  for (let round = 0; round < 3; round += 1) {
    const read = state.read
    state.failing = 4
    await expect.poll(() => state.read, WAIT).toBeGreaterThan(read)
  }
  socket.write('still here')
  expect(String((await once(socket, 'data'))[0])).toBe('still here')
  expect(egress.audits).toEqual([])
  const closed = once(socket, 'close')
  state.failing = Infinity
  await closed
  await expect
    .poll(() => egress.audits, WAIT)
    .toMatchObject([{ decision: 'failed', reason: 'broken', host: 'listed.test' }])
})

test('rules that are asked for and never come are rules that cannot be read', async () => {
  const ended = Promise.withResolvers<unknown>()
  const open = createOpenConnections({ decide: () => new Promise(() => {}) }, 2)
  const over = open.add({ host: 'listed.test', port: 443 }, ended.resolve)
  expect(await ended.promise).toMatchObject({ reason: 'broken' })
  over()
}, 10_000)

test('a user’s own list replaces the common one; a user without egress reaches nothing', async () => {
  const port = await echo()
  const own = [`own.test:${port}`]
  const options: Partial<EgressOptions> = {
    allow: [`listed.test:${port}`],
    allowFor: (userId) => (userId === 'ann' ? own : undefined),
    isOpenTo: (userId) => userId !== 'eve',
  }
  const ann = await open(options)
  expect((await ann.tunnel(`own.test:${port}`)).status).toBe(200)
  expect((await ann.tunnel(`listed.test:${port}`)).status).toBe(403)
  const bob = await open(options, 'bob')
  expect((await bob.tunnel(`own.test:${port}`)).status).toBe(403)
  expect((await bob.tunnel(`listed.test:${port}`)).status).toBe(200)
  expect(() => bob.egress.forUser('eve')).toThrow('no way out')
})
