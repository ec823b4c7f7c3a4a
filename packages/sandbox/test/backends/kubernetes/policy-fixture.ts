/** The sandboxes' part of the chart on the test cluster, in a namespace of its own, and requests to it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { testCluster } from '../../../../../test/cluster/cluster.ts'

const CHART = join(import.meta.dirname, '../../../../../deploy/helm/sandlot')
const PARTS = ['namespace', 'rights', 'pod-policy', 'change-policy']

export interface Answer {
  status: number
  /** The object, or the Status of a refusal. */
  body: Record<string, unknown> & { message?: string }
}

export type Ask = (method: string, path: string, body?: unknown, type?: string) => Promise<Answer>

/** The namespace with its rights and policies, in force, and two callers. */
export async function installPolicies(name: string, values: Record<string, unknown>) {
  const { kubectl, helm, token } = testCluster()
  const namespace = `sandlot-test-${name}-${process.pid}`
  const release = `${namespace}-release`
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-policy-'))
  const file = join(folder, 'values.json')
  writeFileSync(file, JSON.stringify({ sandboxes: { namespace, ...values } }))
  const only = PARTS.flatMap((part) => ['--show-only', `templates/sandboxes/${part}.yaml`])
  const rendered = await helm('template', 'x', CHART, '-n', release, '-f', file, '--validate', ...only)
  const manifest = join(folder, 'manifest.yaml')
  writeFileSync(manifest, rendered)
  const remove = async (): Promise<void> => {
    await kubectl('delete', '-f', manifest, '--ignore-not-found', '--wait=false')
    await kubectl('delete', 'runtimeclass', namespace, '--ignore-not-found', '--wait=false')
    await kubectl('delete', 'namespace', release, '--ignore-not-found', '--wait=false')
    rmSync(folder, { recursive: true })
  }
  try {
    await kubectl('create', 'namespace', release)
    await kubectl('apply', '-f', manifest)
    // Whatever else a Pod could name.
    await kubectl('create', 'serviceaccount', 'other', '-n', namespace)
    writeFileSync(
      join(folder, 'other.json'),
      JSON.stringify({
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: { name: namespace },
        handler: 'runc',
      }),
    )
    await kubectl('apply', '-f', join(folder, 'other.json'))
    const agent = caller(await clusterAt(), await token(release, 'sandlot-agent'))
    const backupToken = await token(release, 'sandlot-backup')
    const admin = caller(await clusterAt(), undefined)
    await inForce(namespace, admin)
    return { namespace, agent, admin, backupToken, remove, kubectl }
  } catch (error) {
    await remove()
    throw error
  }
}

/** A policy works about a second after it was made, and a namespace has its service account later. */
async function inForce(namespace: string, admin: Ask): Promise<void> {
  // It passes `restricted`, which is asked before the policies.
  const securityContext = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  }
  const pod = {
    metadata: { name: 'x' },
    spec: { containers: [{ name: 'x', image: 'x', securityContext }] },
  }
  const until = performance.now() + 30_000
  let last: Answer | undefined
  do {
    last = await admin('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod)
    if (last.body.message?.includes('sandlot:')) return
    await sleep(200)
  } while (performance.now() < until)
  throw new Error(`The policies are not in force: ${JSON.stringify(last.body)}`)
}

interface Server {
  url: URL
  ca: string
  cert: string
  key: string
}

async function clusterAt(): Promise<Server> {
  const config = JSON.parse(
    await testCluster().kubectl('config', 'view', '--raw', '--minify', '-o', 'json'),
  ) as {
    clusters: { cluster: Record<string, string> }[]
    users: { user: Record<string, string> }[]
  }
  const text = (value: string | undefined): string => Buffer.from(value ?? '', 'base64').toString()
  const { cluster = {} } = config.clusters[0] ?? {}
  const { user = {} } = config.users[0] ?? {}
  return {
    url: new URL(cluster['server'] ?? ''),
    ca: text(cluster['certificate-authority-data']),
    cert: text(user['client-certificate-data']),
    key: text(user['client-key-data']),
  }
}

/** Requests by an account's token; without one by the administrator's certificate. */
function caller({ url, ca, cert, key }: Server, token: string | undefined): Ask {
  const as = token === undefined ? { cert, key } : { headers: { authorization: `Bearer ${token}` } }
  return (method, path, body, type = 'application/json') =>
    new Promise((resolve, reject) => {
      const sent = request(new URL(path, url), { method, ca, ...as }, (answer) => {
        const parts: Buffer[] = []
        answer.on('data', (part: Buffer) => parts.push(part))
        answer.on('error', reject)
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString()
          const json = answer.headers['content-type']?.startsWith('application/json') === true
          resolve({
            status: answer.statusCode ?? 0,
            body: json ? (JSON.parse(text) as Answer['body']) : { message: text },
          })
        })
      })
      sent.on('error', reject)
      const text = body === undefined ? '' : JSON.stringify(body)
      if (text !== '') sent.setHeader('content-type', type)
      sent.setHeader('content-length', Buffer.byteLength(text))
      sent.end(text)
    })
}

interface Schema {
  $ref?: string
  allOf?: Schema[]
  oneOf?: Schema[]
  type?: string
  enum?: unknown[]
  items?: Schema
  properties?: Record<string, Schema>
  additionalProperties?: Schema
  required?: string[]
  format?: string
}

/** Members of the cluster's own types, each with a small value, from its OpenAPI. */
export async function readFields(admin: Ask): Promise<(type: string) => [field: string, value: unknown][]> {
  const { body } = await admin('GET', '/openapi/v3/api/v1')
  const { schemas } = body['components'] as { schemas: Record<string, Schema> }
  const resolve = (schema: Schema): Schema => {
    const ref = schema.$ref ?? schema.allOf?.[0]?.$ref
    return ref === undefined ? schema : (schemas[ref.split('/').at(-1) ?? ''] ?? {})
  }
  const sample = (given: Schema): unknown => {
    const schema = resolve(given)
    // The last one: Unconfined, PreferNoSchedule.
    if (schema.enum) return schema.enum.at(-1)
    if (schema.oneOf) return 1
    switch (schema.type) {
      case 'string':
        return schema.format === 'date-time' ? '2026-01-01T00:00:00Z' : 'x'
      case 'integer':
      case 'number':
        return 1
      case 'boolean':
        return true
      case 'array':
        return [sample(schema.items ?? {})]
      default:
        if (schema.additionalProperties) return { x: sample(schema.additionalProperties) }
        return Object.fromEntries(
          (schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]),
        )
    }
  }
  return (type) => {
    const found = Object.keys(schemas).find((name) => name.endsWith(`.v1.${type}`)) ?? ''
    const { properties } = schemas[found] ?? {}
    if (properties === undefined) throw new Error(`The cluster has no type ${type}.`)
    return Object.entries(properties).map(([field, schema]) => [field, sample(schema)])
  }
}

/** A copy with one member set, by a path such as `spec.containers.0.image`; undefined takes it away. */
export function changed<T>(object: T, path: string, value: unknown): T {
  const copy = structuredClone(object)
  const names = path.split('.').map((name) => name.replaceAll('~', '.'))
  const last = names.pop() ?? ''
  let at = copy as Record<string, unknown>
  for (const name of names) at = (at[name] ??= {}) as Record<string, unknown>
  if (value === undefined) delete at[last]
  else at[last] = value
  return copy
}
