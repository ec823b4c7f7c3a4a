/** Actions over ACP are recorded, with the actor and their address; values and texts are not. */
import { randomBytes } from 'node:crypto'
import { methods } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import { expect, test } from 'vitest'
import { UserSecrets } from '../../src/people/user-secrets.ts'
import { createVault } from '../../src/people/vault.ts'
import { AgentBench, heldTool } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { by, connect, newSession, text } from './test-client.ts'

const FROM = { address: '192.0.2.7', key: 'nightly' }
const ADA = { id: 'u_ada', role: 'admin', name: 'Ada', email: 'ada@example.org', from: FROM } as const

test('secrets, rules, shares, links, answers and deletions, in order, as one chain', async () => {
  const change = heldTool('change', false)
  await using bench = await AgentBench.start([
    toolCalls([{ id: 'c1', name: 'change', args: { key: 'the-argument' } }]),
    textAnswer('Done.'),
  ])
  const core = await bench.core({ tools: [change.tool] })
  const { store } = core
  const secrets = new UserSecrets({
    rows: store.people.secrets,
    vault: createVault([randomBytes(32)]),
    redact: () => undefined,
    now: Date.now,
  })
  await using ada = await connect(core, {
    parts: { audit: store.admin.audit, secrets, instructions: store.people.instructions },
  })
  const sessionId = await newSession(ada, by(ADA, { mode: 'manual' }))
  await ada.request(EXT.secrets, { user: ADA, ask: { do: 'set', name: 'TOKEN', value: 'hunter2-hunter2' } })
  await ada.request(EXT.secrets, { user: ADA, ask: { do: 'remove', name: 'TOKEN' } })
  await expect(
    ada.request(EXT.secrets, { user: ADA, ask: { do: 'remove', name: 'TOKEN' } }),
  ).rejects.toThrow()
  const rule = await ada.request(EXT.rules, {
    user: ADA,
    ask: { do: 'add', rule: { effect: 'ask', match: { shell: 'npm publish *' } } },
  })
  await ada.request(EXT.rules, { user: ADA, ask: { do: 'revoke', id: rule['id'] } })
  await ada.request(EXT.instructions, { user: ADA, of: 'team', text: 'Be very brief.' })
  const prompted = ada.request(methods.agent.session.prompt, {
    sessionId,
    prompt: text('my own words'),
    ...by(ADA),
  })
  const session = await core.manager.get('u_ada', sessionId)
  while (session.pendingApprovals().length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const answer = { user: ADA, sessionId, toolCallId: 'c1', optionId: 'allow_once' }
  expect(await ada.request(EXT.approve, answer)).toMatchObject({ answered: true })
  // The second answer changes nothing, so it is no line.
  expect(await ada.request(EXT.approve, answer)).toMatchObject({ answered: false })
  await change.whenBegun(1)
  change.release('the-argument')
  await prompted
  const share = { kind: 'person', targetId: 'u_bob', access: 'watch', mode: 'manual', mayApprove: false }
  const { shares } = (await ada.request(EXT.shares, {
    user: ADA,
    sessionId,
    ask: { do: 'put', share: { ...share, expiresAt: null } },
  })) as { shares: { id: string }[] }
  await ada.request(EXT.shares, { user: ADA, sessionId, ask: { do: 'remove', id: shares[0]?.id } })
  const { snapshots } = (await ada.request(EXT.snapshots, {
    user: ADA,
    sessionId,
    ask: { do: 'make', snapshot: { outputs: true, expiresAt: null } },
  })) as { snapshots: { id: string }[] }
  await ada.request(methods.agent.session.delete, { sessionId, ...by(ADA) })

  const lines = (await store.admin.audit.page({ limit: 50 })).toReversed()
  expect(lines.map(({ what }) => what)).toEqual([
    'secret_set',
    'secret_removed',
    'rule_made',
    'rule_revoked',
    'instructions_changed',
    'approval_answered',
    'shared',
    'unshared',
    'snapshot_made',
    'chat_deleted',
  ])
  for (const { who, from } of lines)
    expect({ who, from }).toEqual({
      who: { id: 'u_ada', name: 'Ada', email: 'ada@example.org' },
      from: { ...FROM, signIn: null },
    })
  expect(lines[5]).toMatchObject({
    whom: { id: sessionId, name: 'change' },
    after: { allowed: true, choice: 'allow_once', call: 'c1' },
  })
  const all = JSON.stringify(lines)
  for (const hidden of ['hunter2', 'the-argument', 'my own words', 'Be very brief', snapshots[0]?.id ?? '-'])
    expect(all).not.toContain(hidden)
  expect(await store.admin.audit.check()).toMatchObject({ lines: 10, problems: [] })
})
