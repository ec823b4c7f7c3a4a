/**
 * Shared parts of the goals: a browser, our page and one of assistant-ui, each with a service that
 * has the same chats.
 */
import { join } from 'node:path'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { type CDPSession, type Page, chromium } from 'playwright-core'
import { build } from 'vite'
import { installPeers } from '../../../test/bench/peers.ts'
import type { BenchArguments } from '../../../test/bench/run.ts'
import { freshDist } from '../test/fixture/dist.ts'
import { FixtureService } from '../test/fixture/service.ts'
import { SessionLog } from '../test/fixture/session-log.ts'

const CHROMIUM = '/usr/bin/chromium'

export interface OpenPage extends AsyncDisposable {
  page: Page
  cdp: CDPSession
  service: FixtureService
}

export interface Contender {
  name: string
  /** A page with nothing in its cache, which is led to the chat. */
  open: (sessionId: string, log: SessionLog, visit?: Visit) => Promise<OpenPage>
}

export interface Visit {
  /** Instead of the chat's. */
  path: string
  /** Throughput in bytes a second, latency in milliseconds. */
  network: { offline: boolean; latency: number; downloadThroughput: number; uploadThroughput: number }
  /** Runs in the page before its own scripts. */
  script: string
}

export interface BenchContext extends BenchArguments {
  /** Our page. */
  dist: string
  /** Sandlot first. */
  contenders: readonly [Contender, Contender]
}

export async function openContext(args: BenchArguments, stack: AsyncDisposableStack): Promise<BenchContext> {
  const peers = await installPeers(new URL('peers/', import.meta.url))
  console.error('Building both pages')
  const dist = await freshDist()
  const peerDist = join(peers, 'node_modules', '.cache', 'dist')
  process.env.NODE_ENV = 'production'
  await build({
    root: peers,
    logLevel: 'silent',
    configFile: false,
    resolve: {
      conditions: ['sandlot-source', 'module', 'browser', 'development|production', 'import', 'default'],
      dedupe: ['react', 'react-dom'],
    },
    build: { outDir: peerDist, emptyOutDir: true, target: 'es2023', chunkSizeWarningLimit: 4_000 },
  })
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'],
  })
  stack.defer(() => browser.close())
  const contender = async (name: string, folder: string): Promise<Contender> => {
    const service = new FixtureService()
    service.setupNeeded = false
    const url = await service.start(folder)
    stack.defer(() => service.stop())
    return {
      name,
      open: async (sessionId, log, visit) => {
        service.sessions.clear()
        service.add(sessionId, 'A chat', log)
        const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
        await context.addCookies([{ ...service.newSignIn(), url }])
        const page = await context.newPage()
        const cdp = await context.newCDPSession(page)
        await cdp.send('Performance.enable')
        await page.addInitScript(WATCH)
        if (visit !== undefined) {
          await cdp.send('Network.enable')
          await cdp.send('Network.emulateNetworkConditions', visit.network)
          await page.addInitScript(visit.script)
        }
        await page.goto(url + (visit?.path ?? `/s/${sessionId}`))
        return { page, cdp, service, [Symbol.asyncDispose]: () => context.close() }
      },
    }
  }
  const contenders = [
    await contender('Sandlot', dist),
    await contender('@assistant-ui/react 0.15.21', peerDist),
  ] as const
  return { ...args, dist, contenders }
}

/** In the page: long tasks and the times between frames, from `watched.begin()` on. */
const WATCH = `
  window.watched = {
    tasks: [], frames: [], last: 0,
    begin() { this.tasks = []; this.frames = []; this.last = performance.now() },
  }
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) watched.tasks.push(duration)
  }).observe({ type: 'longtask' })
  const frame = (now) => {
    watched.frames.push(now - watched.last)
    watched.last = now
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
`

/** Milliseconds of a page's main thread so far. */
export async function timesOf(cdp: CDPSession): Promise<{ script: number; task: number }> {
  const { metrics } = await cdp.send('Performance.getMetrics')
  const ms = (name: string): number => (metrics.find((metric) => metric.name === name)?.value ?? 0) * 1000
  return { script: ms('ScriptDuration'), task: ms('TaskDuration') }
}

export interface Watched {
  /** Over 50 ms. */
  tasks: number[]
  /** Times between frames. */
  frames: number[]
}

export const begin = (page: Page): Promise<unknown> => page.evaluate('watched.begin()')

export function watched(page: Page): Promise<Watched> {
  return page.evaluate('({ tasks: watched.tasks, frames: watched.frames })')
}

/** Resolves when these words are drawn. */
export async function drawn(page: Page, words: string): Promise<void> {
  await page.getByText(words).first().waitFor({ state: 'attached', timeout: 120_000 })
}

export const LAST_WORDS = 'These are the last words.'

/** Questions and answers of many heights, with code in some of them. */
export function messages(count: number): SessionLog {
  const log = new SessionLog()
  for (let at = 0; at < count / 2; at++) {
    log.prompt(`Question ${at}: what does step ${at} do, and why?`)
    const lines = Array.from({ length: 1 + ((at * 7) % 9) }, (_, line) => `Line ${line} of answer **${at}**.`)
    const code = at % 4 === 0 ? `\n\n\`\`\`ts\nconst answer${at} = ${at}\nreturn answer${at} + 1\n\`\`\`` : ''
    const isLast = at + 1 >= count / 2
    log.text('agent_message_chunk', isLast ? LAST_WORDS : lines.join('\n\n') + code)
    log.end('completed')
  }
  return log
}

/** Calls of two kinds by turns, so that none are folded together, in prompts of 40. */
export function calls(count: number): SessionLog {
  const log = new SessionLog()
  for (let at = 0; at < count; at++) {
    if (at % 40 === 0) log.prompt(`Step ${at / 40}, please.`)
    const toolCallId = `c_${at}`
    const rawInput = { command: `grep -rn "step ${at}" src | head -20` }
    const kind = at % 2 === 0 ? 'execute' : 'read'
    log.call({ toolCallId, title: rawInput.command, name: 'run_shell_command', kind, rawInput })
    log.outcome(toolCallId, {
      status: 'completed',
      rawOutput: { forModel: `src/step-${at}.ts:1: step ${at}` },
    })
    if (at % 40 !== 39 && at + 1 < count) continue
    log.text('agent_message_chunk', at + 1 === count ? LAST_WORDS : `Done with step ${at / 40}.`)
    log.end('completed')
  }
  return log
}

/** One piece of live text for each of these words. */
export function* pieces(log: SessionLog, words: readonly string[]): Generator<SessionEvent> {
  let offset = 0
  for (const word of words) {
    yield log.liveText('m_live', offset, word)
    offset += word.length
  }
}
