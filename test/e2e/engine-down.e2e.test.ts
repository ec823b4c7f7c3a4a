import { describe, expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/fake-provider.ts'
import { useWorld } from './fixture.ts'

describe('a Docker engine that is down', () => {
  const world = useWorld({ SANDLOT_DEFAULT_MODE: 'yolo', DOCKER_HOST: 'unix:///nonexistent/docker.sock' })

  test('the chat says so, the model is told, nothing hangs', async () => {
    const { ada, script, sandlot } = world()
    const { requests } = script(
      toolCalls([{ id: 'c', name: 'run_shell_command', args: { command: 'true' } }]),
      textAnswer('The sandbox is not available right now.'),
    )
    await ada.say('run true')
    await ada.cardIs(0, 'failed')
    await ada.answers.filter({ hasText: 'The sandbox is not available' }).waitFor()
    expect(String(requests()[1]?.body.messages.at(-1)?.content)).toMatch(/docker|engine/i)
    expect(await ada.card(0).innerText()).toMatch(/sandbox/i)
    const ready = (await (await fetch(`${sandlot.url}/readyz`)).json()) as {
      reasons: { part: string; ok: boolean }[]
    }
    expect(ready.reasons).toContainEqual(expect.objectContaining({ part: 'sandbox', ok: false }))
  })
})
