import { randomBytes } from 'node:crypto'
import * as http from 'node:http'
import * as https from 'node:https'
import { text } from 'node:stream/consumers'
import { type Finding, failed, ok } from '../../base/finding.ts'
import { messageOf } from '../../base/errors.ts'

const FIX = 'docs/operating.md#tls has what a proxy must pass on.'
const TIMEOUT_MS = 10_000

/**
 * Checks that a running Sandlot is reachable at its public address, including WebSockets. Asked
 * without a sign-in: only Sandlot itself refuses that.
 */
export async function publicUrlCheck(publicUrl: string | undefined): Promise<Finding[]> {
  const [id, name] = ['public-url', 'Public address']
  const origin = publicUrl === undefined || !URL.canParse(publicUrl) ? undefined : new URL(publicUrl).origin
  if (origin === undefined) return []
  const bad = (message: string): Finding[] => [failed('warn', id, name, `${origin} ${message}`, FIX)]
  try {
    const { status, body } = await askForWebSocket(new URL('/ws', origin))
    if (status === 401 || status === 403)
      return [ok('warn', id, name, `${origin} leads here, WebSockets too`)]
    if (status === 400 && body.includes('WebSockets only'))
      return bad('leads here, but the proxy does not pass WebSockets on (Upgrade and Connection)')
    return bad(`answers ${status}, which is not from this Sandlot`)
  } catch (error) {
    const cause = error instanceof Error && 'code' in error ? String(error.code) : ''
    return bad(
      /CERT|SELF_SIGNED|SIGNATURE|ALTNAME/.test(cause)
        ? `shows a certificate that is not trusted here (${cause}); NODE_EXTRA_CA_CERTS adds an authority`
        : `cannot be reached from here (${messageOf(error)})`,
    )
  }
}

function askForWebSocket(url: URL): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': randomBytes(16).toString('base64'),
        origin: url.origin,
      },
    })
    request.on('error', reject)
    request.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve({ status: 101, body: '' })
    })
    request.on('response', (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject)
    })
    request.end()
  })
}
