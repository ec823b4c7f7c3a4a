import { describe, expect, test } from 'vitest'
import { oauthFetch } from '../../../src/mcp/oauth/fetch.ts'

describe('where a server may send requests to', () => {
  const reached: string[] = []
  const record = async (url: string | URL): Promise<Response> => {
    reached.push(String(url))
    return new Response('{}')
  }
  const named = ['https://mcp.example.org/mcp']
  const fetch = oauthFetch({ named, toPublic: record, toNamed: record })

  test.each([
    'http://login.example.org/token',
    'https://169.254.169.254/latest',
    'https://10.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://localhost/',
    'https://localhost./',
    'https://metadata.google.internal/',
    'https://metadata.google.internal./',
    'file:///etc/passwd',
  ])('not to %s', async (url) => {
    await expect(fetch(url)).rejects.toThrow('which is not allowed')
  })

  test('to itself, to public names over https, and to hosts that the operator named', async () => {
    await fetch('https://mcp.example.org/token')
    await fetch('https://login.example.com/token')
    const intranet = oauthFetch({ named: [...named, 'http://login.corp:8080'], toNamed: record })
    await intranet('http://login.corp:8080/token')
    expect(reached).toEqual([
      'https://mcp.example.org/token',
      'https://login.example.com/token',
      'http://login.corp:8080/token',
    ])
  })

  test('from this machine to this machine, and to no other private host', async () => {
    const reached: string[] = []
    const toNamed = async (url: string | URL): Promise<Response> => {
      reached.push(String(url))
      return new Response('{}')
    }
    const here = oauthFetch({ named: ['http://127.0.0.1:1/mcp'], toPublic: record, toNamed })
    const inside = oauthFetch({ named: ['http://mcp.internal/mcp'], toPublic: record, toNamed })
    await here('http://localhost:2/token')
    for (const url of ['http://169.254.169.254/token', 'http://10.0.0.1/', 'http://login.internal/'])
      for (const fetch of [here, inside]) await expect(fetch(url)).rejects.toThrow('which is not allowed')
    await expect(inside('http://127.0.0.1:2/')).rejects.toThrow('which is not allowed')
    expect(reached).toEqual(['http://localhost:2/token'])
  })
})
