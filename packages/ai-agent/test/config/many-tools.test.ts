/** More tools than a provider takes in one request, which would refuse every message of everybody. */
import { noteWords } from '@sandlot/shared/transcript/cause-words'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { expect, test } from 'vitest'
import { offeredToolsOf } from '../../src/config/tool-offer.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { AgentBench, ask, echoTool, happened, newSession } from '../support/agent-fixture.ts'
import { textAnswer } from '../support/fake-provider.ts'

function tools(count: number, server?: string): Tool[] {
  return Array.from({ length: count }, (_, index) => {
    const name = `${server ?? 'zz_ours'}_${index}`
    const runs = server === undefined ? {} : { runs: { as: { id: `${server}::${name}` } } }
    return { ...echoTool(), name, ...runs }
  })
}

test('128 go into a request, ours first, the same each time; one note names the servers left out', async () => {
  await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two'), textAnswer('three')])
  let registry = createRegistry()
  registry.register(...tools(60, 'jira'), ...tools(20), ...tools(60, 'github'), ...tools(5, 'weather'))
  const offer = offeredToolsOf(() => Promise.resolve(registry), { toolsEnabled: true })
  const session = await newSession(await bench.core({ parts: { tools: offer } }))
  await ask(session, 'go')
  await ask(session, 'on')
  const [first, second] = bench.provider.requests.map(({ body }) => body.tools ?? [])
  expect(first).toHaveLength(128)
  expect(second).toEqual(first)
  const names = new Set((first as { function: { name: string } }[]).map((tool) => tool.function.name))
  for (const { name } of [...tools(20), ...tools(60, 'github')]) expect(names).toContain(name)
  expect([...names].filter((name) => name.startsWith('jira'))).toHaveLength(48)
  expect(happened(session.log, 'tools_left_out')).toEqual([
    { type: 'tools_left_out', servers: ['jira', 'weather'] },
  ])
  const notes = session.log
    .reduce(foldTranscript, emptyTranscript())
    .entries.flatMap((entry) => (entry.type === 'note' ? [noteWords(entry.event)] : []))
  expect(notes).toEqual(['Too many tools for one request: some from jira, weather were left out'])
  registry = createRegistry()
  registry.register(...tools(20), ...tools(108, 'jira'))
  await ask(session, 'again')
  expect(bench.provider.requests[2]?.body.tools).toHaveLength(128)
  expect(happened(session.log, 'tools_left_out')).toHaveLength(1)
})
