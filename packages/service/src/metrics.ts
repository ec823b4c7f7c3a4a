/** Metrics of the service. */
import type { LoopDelays } from '@sandlot/shared/node/loop-delay'
import { METRICS, type MetricName } from '@sandlot/shared/node/metrics'
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

export interface Metrics {
  httpRequest(route: string, method: string, status: number, seconds: number): void
  signIn(result: 'ok' | 'refused' | 'limited'): void
  frameIn(type: string): void
  errorOut(code: string): void
  eventOut(live: boolean): void
  slowReaderDropped(): void
  notification(channel: 'push' | 'mail', result: 'sent' | 'failed' | 'dropped'): void
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
  collectDefaultMetrics({ register: registry })
  const options = <N extends MetricName>(name: N) => ({
    name,
    help: METRICS[name].meaning,
    labelNames: METRICS[name].labels,
    registers: [registry],
  })
  const http = new Histogram({
    ...options('sandlot_http_request_duration_seconds'),
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
  })
  const signIns = new Counter(options('sandlot_sign_ins_total'))
  const framesIn = new Counter(options('sandlot_ws_frames_received_total'))
  const errorsOut = new Counter(options('sandlot_ws_errors_sent_total'))
  const eventsOut = new Counter(options('sandlot_ws_events_sent_total'))
  const slow = new Counter(options('sandlot_ws_slow_readers_dropped_total'))
  const notifications = new Counter(options('sandlot_notices_total'))
  const resumes = new Counter(options('sandlot_ws_resumes_total'))
  const sockets = new Gauge(options('sandlot_ws_sockets'))
  const agent = new Gauge(options('sandlot_agent_connected'))
  const delays = new Gauge(options('sandlot_event_loop_delay_seconds'))
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
    notification: (channel, result) => notifications.inc({ channel, result }),
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
