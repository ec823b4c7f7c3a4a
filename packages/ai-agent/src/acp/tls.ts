/**
 * The listener for services on other hosts: TLS 1.3 with a certificate made at start and published
 * in the database, the only one that services accept, and a token that services present. No
 * certificate authority.
 */
import { KeyObject, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { AGENT_TOKEN, ensureSecret, secretsEqual } from '@sandlot/shared/node/secret-file'
import type { AgentAddress, AgentListen } from '../config/listen.ts'
import type { Log } from '../log.ts'

export interface TlsListen {
  host: string
  port: number
  certificate: string
  key: string
  token: string
}

interface TransportSettings {
  listen: AgentListen | undefined
  /** The address of the Unix socket. */
  address: AgentAddress
  keysFolder: string
}

interface Transport {
  /** The address for services. */
  address: AgentAddress
  /** Undefined: it listens on its Unix socket alone. */
  tls: TlsListen | undefined
}

const DAY_MS = 86_400_000
/** It is pinned, and new with each start. */
const VALID_DAYS = 3_650
const SAY_EVERY_MS = 60_000

/** Opens the listeners of these settings. */
export async function openTransport({ listen, address, keysFolder }: TransportSettings): Promise<Transport> {
  if (listen === undefined) return { address, tls: undefined }
  const { host, port, advertised } = listen
  const token = listen.token ?? (await ensureSecret(keysFolder, AGENT_TOKEN))
  const { certificate, key } = await makeCertificate()
  return {
    address: { url: `wss://${advertised}/acp`, certificate },
    tls: { host, port, certificate, key, token },
  }
}

interface Handlers {
  request: (request: IncomingMessage, response: ServerResponse) => void
  upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/** Everything without the token is answered with 401. */
export function tlsServer({ certificate, key, token }: TlsListen, { request, upgrade }: Handlers, log: Log) {
  let saidAt = 0
  const isAdmitted = ({ headers, socket }: IncomingMessage): boolean => {
    const shown = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1]
    if (shown !== undefined && secretsEqual(shown, token)) return true
    // A service tries again and again.
    if (Date.now() - saidAt > SAY_EVERY_MS) {
      saidAt = Date.now()
      const words = 'refused a client without SANDLOT_AGENT_TOKEN: services and agents must have the same'
      log.warn({ from: socket.remoteAddress, shown: shown !== undefined }, words)
    }
    return false
  }
  const server = createServer({ cert: certificate, key, minVersion: 'TLSv1.3' })
  server.on('request', (asked, response) => {
    if (isAdmitted(asked)) request(asked, response)
    else response.writeHead(401, { connection: 'close' }).end()
  })
  server.on('upgrade', (asked: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (isAdmitted(asked)) return upgrade(asked, socket, head)
    socket.on('error', () => undefined)
    socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  })
  return server
}

async function makeCertificate(): Promise<{ certificate: string; key: string }> {
  // Only where it is needed: together they cost a process some megabytes.
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
    'verify',
  ])
  const made = await X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(8).toString('hex'),
    name: 'CN=sandlot-agent',
    // Clocks of two hosts may differ.
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + VALID_DAYS * DAY_MS),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    keys,
  })
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString()
  return { certificate: made.toString('pem'), key }
}
