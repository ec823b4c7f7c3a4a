/** The folder that compose mounts: sandlot.json and agent.env, either of which may be absent. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { beforeEach, expect, test } from 'vitest'
import { read as readSource } from '../../../../test/source-files.ts'
import { readAgentConfig } from '../../src/config/config.ts'
import { testFolder } from '../../../../test/folders.ts'

let data: string
let folder: string
beforeEach(() => {
  data = testFolder('folder')
  folder = join(data, 'config')
  mkdirSync(folder)
})

const read = (env: Record<string, string> = {}) =>
  readAgentConfig(['echo'], { SANDLOT_DATA: data, SANDLOT_CONFIG: folder, ...env })
const put = (name: string, text: string): void => writeFileSync(join(folder, name), text)

test('an empty folder is a whole configuration; the file of the data folder still counts', () => {
  expect(read().file).toEqual(readAgentConfig(['echo'], { SANDLOT_DATA: data }).file)
  writeFileSync(join(data, 'sandlot.json'), JSON.stringify({ tools: { echo: { enabled: false } } }))
  expect(read().file.tools).toMatchObject({ echo: { enabled: false } })
  put('sandlot.json', '{}')
  expect(read().file.tools).toBeUndefined()
})

test('agent.env adds to the environment, and what is set there wins; an empty value is not set', () => {
  put('agent.env', '# a key\nOPENAI_API_KEY="sk-from-file"\nOPENAI_MODEL=from-file\nMCP_TOKEN=tok\n')
  put('sandlot.json', JSON.stringify({ mcpServers: { a: { command: 'x', env: { T: '${MCP_TOKEN}' } } } }))
  const config = read({ OPENAI_API_KEY: '', OPENAI_MODEL: 'from-environment' })
  expect(config.models?.main).toMatchObject({ name: 'from-environment', apiKey: 'sk-from-file' })
  expect(config.secrets).toEqual(expect.arrayContaining(['sk-from-file', 'tok']))
})

test('a name that no process reads is refused there too, and so is one that is not the agent’s alone', () => {
  put('agent.env', 'SANDLOT_MAX_TURN=5\n')
  expect(() => read()).toThrow('did you mean SANDLOT_MAX_TURNS?')
  put('agent.env', 'SANDLOT_SANDBOX_IMAGE=mine\nHTTPS_PROXY=http://proxy\n')
  expect(() => read()).toThrow(/HTTPS_PROXY cannot be set here[^]*SANDLOT_SANDBOX_IMAGE cannot be set here/)
})

test('what compose gives to another process as well cannot be set for this one alone', () => {
  const { services } = parse(readSource('docker/compose.yaml').text, { merge: true }) as {
    services: Record<string, { environment?: Record<string, string> }>
  }
  const names = (service: string): string[] => Object.keys(services[service]?.environment ?? {})
  const others = new Set([...names('engine-gate'), ...names('service')])
  const both = names('ai-agent').filter((name) => others.has(name))
  expect(both.length).toBeGreaterThan(10)
  for (const name of both) {
    put('agent.env', `${name}=1\n`)
    expect(() => read(), name).toThrow(`${name} cannot be set here`)
  }
})

test('a file that is named must be there', () => {
  expect(() => read({ SANDLOT_CONFIG: join(data, 'missing.json') })).toThrow('missing.json')
})
