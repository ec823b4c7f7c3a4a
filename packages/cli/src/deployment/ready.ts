import { get, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import { json } from 'node:stream/consumers'
import { readiness, type Readiness } from '@sandlot/shared/account/api'
import { StepError } from '../steps.ts'

/** The address to open in a browser, for a service that listens on `host`, even on a wildcard. */
export function openableUrl(host: string, port: number): string {
  const shown = ['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}`
}

/** @throws StepError when another program listens there. */
export async function checkPortIsFree(host: string, port: number): Promise<void> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host, port, exclusive: true }, resolve)
    })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE') {
      throw new StepError(
        `Port ${port} on ${host} is in use by another program.`,
        `Use another port: PORT=${port + 1} ./sandlot up`,
      )
    }
    throw new StepError(
      `Couldn’t listen on ${host} port ${port} (${String(code)}).`,
      'Set HOST and PORT to an address of this machine.',
      { cause: error },
    )
  } finally {
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
}

/** Sends `GET <url>/readyz`. Undefined without an answer. */
export async function askReadiness(url: string): Promise<Readiness | undefined> {
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${url}/readyz`, { agent: false, signal: AbortSignal.timeout(5_000) }, resolve).on('error', reject)
    })
    return readiness.parse(await json(answer))
  } catch {
    return undefined // not listening yet, or another program
  }
}
