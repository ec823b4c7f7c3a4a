/** A real service over the real agent, which asks a scripted model. Without an engine: no call needs a sandbox. */
import { AgentFolder } from '../../../ai-agent/test/support/agent-process.ts'
import { type FakeProvider, startFakeProvider } from '../../../ai-agent/test/support/fake-provider.ts'
import { type Harness, startHarness, waitFor } from './harness.ts'

interface WithRealAgent {
  harness: Harness
  provider: FakeProvider
  close(): Promise<void>
}

export async function withRealAgent(): Promise<WithRealAgent> {
  const provider = await startFakeProvider([])
  const folder = new AgentFolder()
  await folder.listening({
    OPENAI_BASE_URL: provider.baseUrl,
    OPENAI_MODEL: 'fake',
    OPENAI_API_KEY: 'k',
    LOG_LEVEL: 'info',
  })
  const at = { agentUrl: `ws+unix://${folder.socket}:/acp`, sessions: `${folder.path}/sessions.db` }
  const harness = await startHarness(at, {}, false)
  await waitFor(async () => (await fetch(`${harness.service.url}/healthz`)).status === 200)
  return {
    harness,
    provider,
    async close() {
      await harness.close()
      await folder[Symbol.asyncDispose]()
      await provider.close()
    },
  }
}
