/** The machine's engine as a remote one would be reached: by TCP, and only with a certificate. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'

import { parseDockerHost } from '../../src/backends/docker/connection.ts'
import { testConfig } from './config.ts'

/**
 * Fill a new folder with a certificate authority and with a certificate for 127.0.0.1 and one for a
 * client: `ca.pem`, `server.*`, and `cert.pem` and `key.pem` as the docker command wants them.
 */
export function makeCertificates(folder: string): void {
  mkdirSync(folder)
  const openssl = (...args: string[]): unknown =>
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  writeFileSync(join(folder, 'san'), 'subjectAltName=IP:127.0.0.1')
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const authority = ['-subj', '/CN=authority', '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem']
  openssl('req', '-x509', ...key, ...authority)
  for (const [who, file] of [
    ['server', 'server'],
    ['client', 'cert'],
  ] as const) {
    const keyFile = who === 'server' ? 'server.key' : 'key.pem'
    openssl('req', ...key, '-subj', `/CN=${who}`, '-keyout', keyFile, '-out', `${who}.csr`)
    const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'san']
    openssl('x509', '-req', '-in', `${who}.csr`, ...signed, '-out', `${file}.pem`)
  }
}

export interface TlsEngine {
  /** For `DOCKER_HOST`. */
  address: string
  close(): void
}

/** An engine that lets in who has a certificate of the authority in `folder`. */
export async function engineBehindTls(folder: string): Promise<TlsEngine> {
  const engine = parseDockerHost(testConfig.dockerHost)
  if (engine.kind !== 'unix') throw new Error('the engine of the tests has no Unix socket')
  const pem = (name: string): Buffer => readFileSync(join(folder, name))
  const options = { ca: pem('ca.pem'), cert: pem('server.pem'), key: pem('server.key') }
  const open = new Set<Socket>()
  const server = createServer(
    { ...options, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['http/1.1'] },
    (client) => {
      const inner = connect({ path: engine.socketPath, allowHalfOpen: true })
      for (const one of [client, inner]) {
        open.add(one)
        one.on('error', () => one.destroy()).on('close', () => open.delete(one))
      }
      client.pipe(inner)
      inner.pipe(client)
      client.on('close', () => inner.destroy())
    },
  )
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      for (const one of open) one.destroy()
      server.close()
    },
  }
}
