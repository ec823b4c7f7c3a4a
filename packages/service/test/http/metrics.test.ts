import { expect, test } from 'vitest'
import { startHarness } from '../support/harness.ts'

test('/metrics has the agent’s beside our own, and ours alone while the agent does not answer', async () => {
  const harness = await startHarness()
  try {
    const read = async (): Promise<string> => (await fetch(`${harness.service.url}/metrics`)).text()
    const alone = await read()
    expect(alone).not.toContain('sandlot_tool_calls_total')
    expect(alone).toContain('sandlot_event_loop_delay_seconds{process="service",quantile="1"}')
    expect(alone).not.toContain('process="agent"')
    harness.agent.metrics = {
      text: 'sandlot_tool_calls_total{tool="echo",outcome="timeout"} 1\n',
      eventLoopDelayMs: { p50: 1, p99: 20, max: 500 },
    }
    const both = await read()
    expect(both).toContain('sandlot_tool_calls_total{tool="echo",outcome="timeout"} 1')
    expect(both).toContain('sandlot_ws_sockets')
    expect(both).toContain('sandlot_event_loop_delay_seconds{process="agent",quantile="1"} 0.5')
  } finally {
    await harness.close()
  }
})
