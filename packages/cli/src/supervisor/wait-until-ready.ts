/**
 * `wait-until-ready.js <url> <milliseconds>`: polls until ready or the time limit, and prints the
 * last answer as JSON. A separate process keeps its modules out of the supervisor's memory.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Readiness } from '@sandlot/shared/account/api'
import { askReadiness } from '../deployment/ready.ts'

async function waitUntilReady(url: string, timeoutMs: number): Promise<Readiness | undefined> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const now = await askReadiness(url)
    if (now?.ready === true || performance.now() > deadline) return now
    await sleep(100)
  }
}

const [url = '', timeoutMs] = process.argv.slice(2)
const answer = await waitUntilReady(url, Number(timeoutMs))
if (answer !== undefined) process.stdout.write(JSON.stringify(answer))
