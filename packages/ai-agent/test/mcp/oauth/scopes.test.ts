import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { includesScopes, joinScopes } from '../../../src/mcp/oauth/authority.ts'
import { batchOf, openMcpBench } from '../mcp-bench.ts'
import { ADA, askedBy, connect, linkOf } from './bench.ts'
import { startOAuthServer } from './server.ts'

const cal = (url: string): Record<string, object> => ({
  cal: { url, auth: { type: 'oauth' }, readOnly: ['look', 'other'] },
})

describe.concurrent('a tool that needs more than was allowed', () => {
  test('shows one link for all concurrent calls, with its scope; after that sign-in it works', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const batch = await connect(bench, server)
    server.needs = (tool) => (tool === 'look' ? 'write' : undefined)
    const calls = Array.from({ length: 8 }, (_, index) => ({ id: `c${index}`, name: 'look', args: {} }))
    const outcomes = await batch.run(calls)
    const [link = '', ...others] = [...new Set(outcomes.map(linkOf))]
    expect(others).toEqual([])
    expect(outcomes[0]).toMatchObject({
      reason: 'needs_auth',
      forModel: expect.stringContaining('The user has to allow cal more first: write.'),
      data: { connect: { wanted: 'write' } },
      content: [{ content: { name: 'Allow cal: write' } }],
    })
    expect(askedBy(link)).toBe('read write')
    // Tools allowed before keep working in the meantime.
    expect(await batch.call('other', {})).toMatchObject({ status: 'completed' })
    expect(await bench.mcp.finishSignIn(ADA, server.agree(link))).toEqual({ server: 'cal' })
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })
    expect(server.registrations).toBe(1)
  })

  test('two that need different things: the later link asks for both, and either may be used', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const batch = await connect(bench, server)
    server.needs = (tool) => (tool === 'look' ? 'a' : 'b')
    const first = linkOf(await batch.call('look', {}))
    const second = linkOf(await batch.call('other', {}))
    expect([askedBy(first), askedBy(second)]).toEqual(['read a', 'read b a'])
    expect(linkOf(await batch.call('look', {}))).toBe(second)
    expect(await bench.mcp.finishSignIn(ADA, server.agree(first))).toEqual({ server: 'cal' })
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })
    expect(await bench.mcp.finishSignIn(ADA, server.agree(second))).toEqual({ server: 'cal' })
    expect(await batch.call('other', {})).toMatchObject({ status: 'completed' })
  })

  test('that still refuses: the user is asked twice, then the call says why; other tools keep working', async () => {
    await using server = await startOAuthServer()
    server.grants = () => 'read'
    await using bench = openMcpBench(cal(server.url))
    const batch = await connect(bench, server)
    server.needs = (tool) => (tool === 'look' ? 'write' : undefined)
    for (let times = 0; times < 2; times++) {
      const link = linkOf(await batch.call('look', {}))
      expect(await bench.mcp.finishSignIn(ADA, server.agree(link))).toEqual({ server: 'cal' })
    }
    const outcome = await batch.call('look', {})
    expect(outcome).toMatchObject({
      reason: 'unavailable',
      forModel: expect.stringContaining('wants write, and the user has allowed that already without effect'),
    })
    expect(linkOf(outcome)).toBe('')
    expect(await batch.call('other', {})).toMatchObject({ status: 'completed' })
  })

  test('on a server with an operator’s key says that the key does not suffice', async () => {
    await using server = await startOAuthServer()
    server.valid.add('k')
    server.needs = () => 'write'
    await using bench = openMcpBench({ cal: { url: server.url, headers: { Authorization: 'Bearer k' } } })
    expect(await batchOf(await bench.tools()).call('look', {})).toMatchObject({
      reason: 'unavailable',
      forModel: expect.stringContaining('its key does not allow this (Insufficient scope: required "write")'),
    })
  })
})

describe('scopes', () => {
  const scope = fc.array(fc.string({ maxLength: 6 })).map((words) => words.join(' '))

  test('joined contain each valid scope once, and include their parts', () => {
    fc.assert(
      fc.property(fc.array(scope), (all) => {
        const joined = joinScopes(...all)
        const words = (joined ?? '').split(' ').filter((word) => word !== '')
        expect(new Set(words).size).toBe(words.length)
        expect(words.every((word) => /^[\x21\x23-\x5B\x5D-\x7E]+$/.test(word))).toBe(true)
        if (words.length < 64) for (const one of all) expect(includesScopes(joined, one)).toBe(true)
      }),
    )
  })
})
