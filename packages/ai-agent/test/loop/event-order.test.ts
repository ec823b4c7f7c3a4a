/** The row *event order*: everything that one prompt makes, in one log, in the order in which it happened. */
import { isLive, isOutcome, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { AgentBench, heldTool, newSession, whenHappened } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

test('call, approval, start, status, end, turn_ended, text, prompt_ended; what is live comes between what is settled', async () => {
  const change = heldTool('change', false)
  await using bench = await AgentBench.start([
    toolCalls([{ id: 'c1', name: 'change', args: { key: 'k' } }]),
    textAnswer('It is done.'),
  ])
  const session = await newSession(await bench.core({ tools: [change.tool] }), 'manual')
  const { live, close } = session.subscribe(0)
  const { done } = await session.prompt('go')
  await whenHappened(session, 'approval_asked')
  await session.answer('c1', 'allow_once')
  await change.whenBegun(1)
  change.release('k')
  await done

  const story: string[] = []
  for await (const event of live) {
    const happened = sandlotEventOf(event)
    const name = isOutcome(event) ? 'end' : event.sessionUpdate
    const status = event.sessionUpdate === 'tool_call_update' ? event.status : undefined
    const word = happened?.type ?? (status === 'in_progress' && !isLive(event) ? 'start' : name)
    story.push(isLive(event) ? `live ${word}` : word)
    if (happened?.type === 'prompt_ended') break
  }
  close()
  const ofPrompt = story.slice(story.indexOf('tool_call')).filter((word) => word !== 'usage_update')
  expect(ofPrompt.filter((word, at) => word !== ofPrompt[at - 1])).toEqual([
    'tool_call',
    'approval_asked',
    'approval_answered',
    'start',
    'live tool_call_update',
    'end',
    'turn_ended',
    'live agent_message_chunk',
    'agent_message_chunk',
    'prompt_ended',
  ])
  // The stream and the log have the same settled events in the same order, numbered without a hole.
  expect(session.log.map(seqOf)).toEqual(session.log.map((_, at) => at + 1))
  const settled = story.filter((word) => !word.startsWith('live '))
  const logged = session.log.map((event) => {
    if (isOutcome(event)) return 'end'
    const starts = event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress'
    return sandlotEventOf(event)?.type ?? (starts ? 'start' : event.sessionUpdate)
  })
  expect(logged.slice(-settled.length)).toEqual(settled)
})
