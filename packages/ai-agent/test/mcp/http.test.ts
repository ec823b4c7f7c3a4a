import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { json, startHttpServer } from './http-server.ts'
import { batchOf, openMcpBench } from './mcp-bench.ts'

const calls = (seen: readonly { rpc?: string }[]): string[] => seen.flatMap(({ rpc }) => rpc ?? [])

describe.concurrent('a server over HTTP', () => {
  test('is initialized once, called in its session with the operator’s headers, and terminated at the end', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench(
      { web: { url: server.url, headers: { Authorization: 'Bearer ${KEY}' } } },
      { env: { KEY: 'operators-key' } },
    )
    const batch = batchOf(await bench.tools())
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed', forModel: 'called look' })
    const [session] = server.sessions
    const call = server.seen.find(({ rpc }) => rpc === 'tools/call')
    expect(call?.headers).toMatchObject({ authorization: 'Bearer operators-key', 'mcp-session-id': session })
    // The user of a call is not revealed outside.
    expect(JSON.stringify(server.seen)).not.toContain('u_test')
    await bench.close()
    expect(server.sessions.size).toBe(0)
    expect(server.seen.at(-1)?.method).toBe('DELETE')
  })

  test('that has lost the session gets a new one, and the call once', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    server.sessions.clear()
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })
    expect(calls(server.seen).filter((rpc) => rpc === 'initialize')).toHaveLength(2)
  })

  test.each<[string, number, string]>([
    ['as the protocol says', 404, ''],
    ['as servers made from an example do', 400, 'Bad Request: No valid session ID provided'],
    ['in other words', 400, 'Invalid or missing session ID'],
    ['as servers that have restarted do', 400, 'Bad Request: Server not initialized'],
    ['as something that was', 410, 'Session expired'],
    ['in an answer', 200, 'Session not found'],
  ])(
    'that has lost the session and says so %s: two calls and a list go on in a new one',
    async (_, status, message) => {
      await using server = await startHttpServer()
      await using bench = openMcpBench({ web: { url: server.url, readOnly: ['look', 'other'] } })
      const batch = batchOf(await bench.tools())
      const lost = new Set(server.sessions)
      server.sessions.clear()
      server.intercept = (request, response, rpc) => {
        if (!lost.has(String(request.headers['mcp-session-id']))) return false
        const error = { code: -32_000, message }
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', error, id: status === 200 ? (rpc?.id ?? null) : null }))
        return true
      }
      const both = await batch.run(['look', 'other'].map((name) => ({ id: name, name, args: {} })))
      expect(both.map((outcome) => outcome.status)).toEqual(['completed', 'completed'])
      expect(calls(server.seen).filter((rpc) => rpc === 'initialize')).toHaveLength(2)
      const forget = server.intercept
      server.intercept = (_request, response) => {
        response.writeHead(400).end('that is no city')
        return true
      }
      // A failed list is fetched again with the next prompt.
      expect(await batch.call('look', {}, 'refused')).toMatchObject({ status: 'failed' })
      for (const session of server.sessions) lost.add(session)
      server.sessions.clear()
      server.intercept = forget
      expect((await bench.tools()).has('web::look')).toBe(true)
    },
  )

  test('that refuses a call by 400 for another reason is not called again', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    server.intercept = (_request, response, message) => {
      if (message?.method !== 'tools/call') return false
      response.writeHead(400).end('that is no city')
      return true
    }
    expect(await batch.call('look', {})).toMatchObject({ status: 'failed' })
    expect(calls(server.seen).filter((rpc) => rpc === 'tools/call')).toHaveLength(1)
  })

  test.each<[string, string, string]>([
    ['an answer', 'application/json', '{"jsonrpc":'],
    ['an event', 'text/event-stream', 'data: {"jsonrpc":'],
  ])(
    'that begins %s and never ends it is given up, before the call has had its time',
    async (_, type, begun) => {
      await using server = await startHttpServer()
      await using bench = openMcpBench({ web: { url: server.url, timeoutMs: 300_000 } })
      const batch = batchOf(await bench.tools())
      server.intercept = (_request, response, message) => {
        if (message?.method !== 'tools/call') return false
        response.writeHead(200, { 'content-type': type })
        response.write(begun)
        const drip = setInterval(() => response.write(' '), 100)
        response.on('close', () => clearInterval(drip))
        return true
      }
      expect(await batch.call('look', {})).toMatchObject({
        reason: 'interrupted',
        forModel: expect.stringContaining('did not send the whole of a message within 5 s'),
      })
      server.intercept = () => false
      expect(await batch.call('look', {}, 'again')).toMatchObject({ status: 'completed' })
    },
    60_000,
  )

  test.each(['\n', '\r'])(
    'that reports progress and sends comments for longer than that is waited for: %j',
    async (end) => {
      await using server = await startHttpServer()
      await using bench = openMcpBench({ web: { url: server.url, timeoutMs: 3_000 } })
      const batch = batchOf(await bench.tools())
      server.intercept = (_request, response, message, body) => {
        if (message?.method !== 'tools/call') return false
        const { progressToken } = (JSON.parse(body) as { params: { _meta: { progressToken: number } } })
          .params._meta
        response.writeHead(200, { 'content-type': 'Text/Event-Stream' })
        let step = 0
        const report = setInterval(() => {
          step++
          response.write(`: still here${end}`)
          const params = { progressToken, progress: step }
          response.write(
            `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}${end}${end}`,
          )
          if (step < 13) return
          clearInterval(report)
          const result = { content: [{ type: 'text', text: 'after 6 s' }] }
          response.end(
            `: and${end}data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}${end}${end}`,
          )
        }, 500)
        return true
      }
      expect(await batch.call('look', {})).toMatchObject({ status: 'completed', forModel: 'after 6 s' })
    },
    60_000,
  )

  test('that keeps its one answer open with white space for longer than that is waited for', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    server.intercept = (_request, response, message) => {
      if (message?.method !== 'tools/call') return false
      response.writeHead(200, { 'content-type': 'application/json' })
      let spaces = 0
      const open = setInterval(() => {
        if (++spaces < 13) return void response.write(' ')
        clearInterval(open)
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { content: 'after 6 s' } }))
      }, 500)
      return true
    }
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed', forModel: 'after 6 s' })
  }, 60_000)

  test.each<[string, (response: ServerResponse) => void]>([
    ['at all', () => undefined],
    ['to its end', (response) => void response.writeHead(202).write(' ')],
  ])(
    'that does not answer the end of the handshake %s holds up no prompt',
    async (_, half) => {
      await using server = await startHttpServer()
      server.intercept = (_request, response, message) => {
        if (message?.method !== 'notifications/initialized') return false
        half(response)
        return true
      }
      await using bench = openMcpBench({ web: { url: server.url, startTimeoutMs: 1_000 } })
      expect((await bench.tools()).listTools()).toEqual([])
      const [state] = await bench.mcp.servers.states('u_test', AbortSignal.abort())
      expect(state).toMatchObject({ state: 'unavailable' })
    },
    60_000,
  )

  test('whose stream ends without a result: the call ends at once, with an unknown effect', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    server.intercept = (_request, response, message) => {
      if (message?.method !== 'tools/call') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': hello\n\n')
      setTimeout(() => response.destroy(), 20)
      return true
    }
    expect(await batch.call('look', {})).toMatchObject({ status: 'failed', reason: 'interrupted' })
  })

  test('whose stream breaks off after an event id is resumed from there', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    let asked: number | undefined
    server.intercept = (request, response, message) => {
      const events = { 'content-type': 'text/event-stream' }
      if (message?.method === 'tools/call') {
        asked = message.id
        response.writeHead(200, events).end('id: e1\nretry: 10\ndata: \n\n')
        return true
      }
      if (request.headers['last-event-id'] !== 'e1') return false
      const result = { content: [{ type: 'text', text: 'after all' }] }
      response.writeHead(200, events)
      response.end(`id: e2\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: asked, result })}\n\n`)
      return true
    }
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed', forModel: 'after all' })
  })

  test('a redirect to another origin is not followed, and gets no headers', async () => {
    await using elsewhere = await startHttpServer()
    await using server = await startHttpServer()
    server.intercept = (_request, response) => {
      response.writeHead(307, { location: elsewhere.url }).end()
      return true
    }
    await using bench = openMcpBench({ web: { url: server.url, headers: { 'X-Key': 'secret' } } })
    expect((await bench.tools()).listTools()).toEqual([])
    expect(elsewhere.seen).toEqual([])
    expect(JSON.stringify(bench.logged)).toContain('not followed')
  })

  test.each(['application/json', 'text/event-stream'])(
    'an answer of 50 MB as %s ends one call, in bounded memory',
    async (type) => {
      await using server = await startHttpServer()
      await using bench = openMcpBench({ web: { url: server.url } })
      const batch = batchOf(await bench.tools())
      let written = 0
      server.intercept = (_request, response, message) => {
        if (message?.method !== 'tools/call') return false
        response.writeHead(200, { 'content-type': type })
        const more = (): void => {
          while (written < 50_000_000 && !response.destroyed) {
            written += 65_536
            if (!response.write('x'.repeat(65_536))) return void response.once('drain', more)
          }
          response.end()
        }
        response.write('data: ')
        more()
        return true
      }
      const outcome = await batch.call('look', {})
      expect(outcome).toMatchObject({
        status: 'failed',
        forModel: expect.stringContaining('more than 8388608 bytes'),
      })
      expect(written).toBeLessThan(40_000_000)
    },
  )

  test('that is down is not offered, a call of it says so, and it is offered again when it is back', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    server.intercept = (_request, response) => {
      response.writeHead(503).end('down for maintenance')
      return true
    }
    expect(await batch.call('look', {})).toMatchObject({
      reason: 'unavailable',
      forModel: expect.stringContaining('it answered 503'),
    })
    expect((await bench.tools()).listTools()).toEqual([])
    server.intercept = () => false
    expect((await bench.tools()).has('web::look')).toBe(true)
  })

  test('two servers with tools of the same name: both take their server’s', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ one: { url: server.url }, two: { url: server.url, tools: ['look'] } })
    const names = (await bench.tools()).modelTools().map(({ name }) => name)
    expect(names).toEqual(['one_look', 'other', 'two_look'])
  })

  test('headers with a secret of the user are that user’s own, and a new secret is used from the next prompt on', async () => {
    await using server = await startHttpServer()
    await using bench = openMcpBench({ web: { url: server.url, headers: { 'X-Token': '${secret:TOKEN}' } } })
    bench.secrets.set('u_ada TOKEN', 'of ada')
    const sent = async (user: string): Promise<unknown> => {
      await batchOf(await bench.tools(user)).call('look', {})
      return server.seen.findLast(({ rpc }) => rpc === 'tools/call')?.headers['x-token']
    }
    expect([await sent('u_ada'), await sent('u_bob')]).toEqual(['of ada', undefined])
    bench.secrets.set('u_bob TOKEN', 'of bob')
    expect([await sent('u_bob'), await sent('u_ada')]).toEqual(['of bob', 'of ada'])
  })

  /** A server of the newest revision, which has no sessions, with these tools. */
  function modern(server: Awaited<ReturnType<typeof startHttpServer>>, tools: readonly object[]): void {
    server.intercept = (_request, response, message) => {
      const results: Record<string, object> = {
        'server/discover': {
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
          instructions: '',
        },
        'tools/list': { tools },
      }
      const result = results[message?.method ?? '']
      if (result === undefined) return false
      json(response, message?.id, { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result })
      return true
    }
  }

  test('speaks the newest revision with a server that does', async () => {
    await using server = await startHttpServer()
    modern(server, [])
    await using bench = openMcpBench({ web: { url: server.url } })
    await bench.tools()
    expect(calls(server.seen)[0]).toBe('server/discover')
  })

  test('does not offer a tool whose x-mcp-header is not valid', async () => {
    const of = (name: string, properties: object, more: object = {}): object => ({
      name,
      inputSchema: { type: 'object', properties, ...more },
    })
    const region = { type: 'string', 'x-mcp-header': 'Region' }
    const tools = [
      of('fine', {
        region,
        where: { type: 'object', properties: { zone: { type: 'integer', 'x-mcp-header': 'Zone' } } },
      }),
      of('no_token', { region: { ...region, 'x-mcp-header': 'a b' } }),
      of('a_number', { region: { ...region, type: 'number' } }),
      of('twice', { region, again: { ...region, 'x-mcp-header': 'REGION' } }),
      of('in_items', { list: { type: 'array', items: region } }),
      of('in_one_of', { any: { oneOf: [region] } }),
      of('at_the_root', {}, { 'x-mcp-header': 'Region' }),
      of('a_default_is_data', { region: { type: 'object', default: { 'x-mcp-header': 7 } } }),
    ]
    await using server = await startHttpServer()
    modern(server, tools)
    await using bench = openMcpBench({ web: { url: server.url } })
    expect((await bench.tools()).listTools().map(({ name }) => name)).toEqual(['a_default_is_data', 'fine'])
    expect(JSON.stringify(bench.logged)).toContain(
      'its x-mcp-header is not valid: two parameters have the same',
    )
  })
})
