/** The service's metrics, their names and labels. No user data in labels. */
import type { LoopDelays } from '@sandlot/shared/node/loop-delay'
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

export interface Metrics {
  httpRequest(route: string, method: string, status: number, seconds: number): void
  signIn(result: 'ok' | 'refused' | 'limited'): void
  frameIn(type: string): void
  errorOut(code: string): void
  eventOut(live: boolean): void
  slowReaderDropped(): void
  notice(channel: 'push' | 'mail', result: 'sent' | 'failed' | 'dropped'): void
  resumed(): void
  sockets: (count: number) => void
  agentConnected: (connected: boolean) => void
  /** Since the last scrape, by process; undefined: the process is away. */
  loopDelays(by: Record<'service' | 'agent', LoopDelays | undefined>): void
  /** Prometheus text. */
  text(): Promise<string>
  readonly contentType: string
}

export function makeMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const http = new Histogram({
    name: 'sandlot_http_request_duration_seconds',
    help: 'Time to answer an HTTP request',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers,
  })
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name, help, labelNames, registers })
  const signIns = counter('sandlot_sign_ins_total', 'Sign-ins by result', ['result'])
  const framesIn = counter('sandlot_ws_frames_received_total', 'Chat frames received by type', ['type'])
  const errorsOut = counter('sandlot_ws_errors_sent_total', 'ai_chat_error frames sent by code', ['code'])
  const eventsOut = counter('sandlot_ws_events_sent_total', 'Session events sent to sockets', ['live'])
  const slow = counter(
    'sandlot_ws_slow_readers_dropped_total',
    'Sockets closed because they read too slowly',
    [],
  )
  const notices = counter('sandlot_notices_total', 'Notices to people who are away', ['channel', 'result'])
  const resumes = counter('sandlot_ws_resumes_total', 'Sessions resumed from a sequence number', [])
  const sockets = new Gauge({ name: 'sandlot_ws_sockets', help: 'Open chat sockets', registers })
  const agent = new Gauge({
    name: 'sandlot_agent_connected',
    help: '1 while ai-agent is reachable',
    registers,
  })
  const delays = new Gauge({
    name: 'sandlot_event_loop_delay_seconds',
    help: 'For how long the event loop was held, since the last scrape',
    labelNames: ['process', 'quantile'],
    registers,
  })
  sockets.set(0)
  agent.set(0)

  return {
    httpRequest: (route, method, status, seconds) =>
      http.observe({ route, method, status: String(status) }, seconds),
    signIn: (result) => signIns.inc({ result }),
    frameIn: (type) => framesIn.inc({ type }),
    errorOut: (code) => errorsOut.inc({ code }),
    eventOut: (live) => eventsOut.inc({ live: String(live) }),
    slowReaderDropped: () => slow.inc(),
    notice: (channel, result) => notices.inc({ channel, result }),
    resumed: () => resumes.inc(),
    sockets: (count) => sockets.set(count),
    agentConnected: (connected) => agent.set(connected ? 1 : 0),
    loopDelays(by) {
      delays.reset()
      for (const [process, of] of Object.entries(by)) {
        if (of === undefined) continue
        delays.set({ process, quantile: '0.5' }, of.p50 / 1_000)
        delays.set({ process, quantile: '0.99' }, of.p99 / 1_000)
        delays.set({ process, quantile: '1' }, of.max / 1_000)
      }
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}
