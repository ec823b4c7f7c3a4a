/** The way to a cluster: from a kubeconfig, or from the service account of this Pod. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'

import { parse } from 'yaml'
import { z } from 'zod'

import { SandboxError } from '../../errors.ts'

/** An API server, and the identity that is shown to it. */
export interface ClusterAccess {
  /** Always `https:`; its path is a prefix of every request's. */
  readonly server: URL
  /** The namespace of the sandboxes. */
  readonly namespace: string
  /** In PEM. Without `ca` the certificate authorities of Node count. */
  readonly tls: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly servername?: string
  }
  /**
   * The header `authorization`; undefined where a certificate is shown. A token in a file is read
   * again at least once a minute, and at once if `refused`.
   */
  authorization(refused?: boolean): Promise<string | undefined>
}

export interface AccessOptions {
  namespace: string
  /** Default: the service account of this Pod, else `KUBECONFIG`, else the user's own. */
  kubeconfig?: string | undefined
  environment: {
    KUBERNETES_SERVICE_HOST?: string | undefined
    KUBERNETES_SERVICE_PORT?: string | undefined
    KUBECONFIG?: string | undefined
  }
  /** Default: the folder that Kubernetes mounts. */
  serviceAccountFolder?: string
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
/** A projected token is replaced two minutes before its end at the latest. */
const TOKEN_MS = 60_000
const WORD = /^[\x21-\x7e]+$/
const MAKE_TOKEN =
  'Make a ServiceAccount for the agent and a kubeconfig with its token (docs/kubernetes.md), and name that in SANDLOT_KUBERNETES_KUBECONFIG.'

const text = z.string().min(1).optional()
const named = <T extends z.ZodType>(name: string, value: T) =>
  z.array(z.looseObject({ name: z.string(), [name]: value })).nullish()

const CLUSTER = z.looseObject({
  server: z.string(),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'tls-server-name': text,
  'insecure-skip-tls-verify': z.boolean().optional(),
  'proxy-url': text,
})
const USER = z.looseObject({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  exec: z.unknown().optional(),
  'auth-provider': z.unknown().optional(),
  as: text,
})
const CONTEXT = z.looseObject({ cluster: z.string(), user: z.string() })
const KUBECONFIG = z.looseObject({
  'current-context': z.string().nullish(),
  clusters: named('cluster', CLUSTER),
  users: named('user', USER),
  contexts: named('context', CONTEXT),
})

/** Rejects with a `SandboxError` that says what to change. Contacts nothing. */
export async function readAccess(options: AccessOptions): Promise<ClusterAccess> {
  const { namespace, environment, serviceAccountFolder = SERVICE_ACCOUNT } = options
  const host = environment.KUBERNETES_SERVICE_HOST
  if (options.kubeconfig === undefined && host && existsSync(join(serviceAccountFolder, 'token'))) {
    const name = host.includes(':') ? `[${host}]` : host
    return {
      server: new URL(`https://${name}:${environment.KUBERNETES_SERVICE_PORT ?? '443'}`),
      namespace,
      tls: { ca: await read(join(serviceAccountFolder, 'ca.crt'), 'The certificate of the cluster') },
      authorization: tokenOf(join(serviceAccountFolder, 'token')),
    }
  }
  const paths = options.kubeconfig
    ? [options.kubeconfig]
    : (environment.KUBECONFIG?.split(delimiter).filter(Boolean) ?? [])
  return fromKubeconfig(paths.length > 0 ? paths : [join(homedir(), '.kube', 'config')], namespace)
}

/** The first of several files that has a name counts, like for kubectl. */
async function fromKubeconfig(paths: string[], namespace: string): Promise<ClusterAccess> {
  const files = await Promise.all(paths.map(parseFile))
  const shown = paths.join(delimiter)
  const current = files.map(({ config }) => config['current-context']).find(Boolean)
  if (!current) throw unusable(shown, 'has no current-context')
  const find = <T>(list: 'clusters' | 'users' | 'contexts', member: string, name: string): Found<T> => {
    for (const { config, folder } of files) {
      const entry = config[list]?.find((entry) => entry.name === name)
      if (entry) return { value: entry[member] as T, path: (file) => resolve(folder, file) }
    }
    throw unusable(shown, `has no entry "${name}" in ${list}`)
  }
  const context = find<z.infer<typeof CONTEXT>>('contexts', 'context', current).value
  const cluster = find<z.infer<typeof CLUSTER>>('clusters', 'cluster', context.cluster)
  const user = find<z.infer<typeof USER>>('users', 'user', context.user)
  const server = serverOf(cluster.value, shown)
  refuseUser(user.value, context.user, shown)

  const ca = await pem(cluster, 'certificate-authority', shown)
  const cert = await pem(user, 'client-certificate', shown)
  const key = await pem(user, 'client-key', shown)
  const { token, tokenFile } = user.value
  if (token === undefined && tokenFile === undefined && (cert === undefined || key === undefined))
    throw unusable(shown, `has neither a token nor a certificate with its key for "${context.user}"`)
  if (token !== undefined && !WORD.test(token)) throw unusable(shown, 'has a token that is not one word')
  const servername = cluster.value['tls-server-name']
  return {
    server,
    namespace,
    tls: {
      ...(ca && { ca }),
      ...(cert && key && { cert, key }),
      ...(servername && { servername }),
    },
    authorization: tokenFile
      ? tokenOf(user.path(tokenFile))
      : () => Promise.resolve(token === undefined ? undefined : `Bearer ${token}`),
  }
}

interface Found<T> {
  value: T
  /** A file that it names, relative to its kubeconfig. */
  path: (file: string) => string
}

async function parseFile(path: string): Promise<{ config: z.infer<typeof KUBECONFIG>; folder: string }> {
  const content = await read(path, 'The kubeconfig')
  let value: unknown
  try {
    // Without a snippet of the file, which holds secrets.
    value = parse(content, { prettyErrors: false })
  } catch (error) {
    throw unusable(path, `is no YAML (${messageOf(error)})`, error)
  }
  const parsed = KUBECONFIG.safeParse(value)
  if (!parsed.success) throw unusable(path, `is not as kubectl writes it: ${z.prettifyError(parsed.error)}`)
  return { config: parsed.data, folder: dirname(resolve(path)) }
}

function serverOf(cluster: z.infer<typeof CLUSTER>, shown: string): URL {
  const server = URL.canParse(cluster.server) ? new URL(cluster.server) : undefined
  if (server?.protocol !== 'https:')
    throw unusable(shown, `names the server "${cluster.server}", which is no https address`)
  if (cluster['insecure-skip-tls-verify'])
    throw unusable(
      shown,
      'turns the check of the server’s certificate off (insecure-skip-tls-verify)',
      undefined,
      'Name the cluster’s certificate authority in it instead (certificate-authority-data).',
    )
  if (cluster['proxy-url'])
    throw unusable(
      shown,
      'asks for a proxy (proxy-url)',
      undefined,
      'Name a server in it that is reached directly.',
    )
  return server
}

/** Identities that would start a foreign program, or that the API server no longer knows. */
function refuseUser(user: z.infer<typeof USER>, name: string, shown: string): void {
  const refused = [
    [user.exec, 'a program for its credentials (exec)'],
    [user['auth-provider'], 'an auth-provider'],
    [user.username, 'a user name and password'],
    [user.as, 'impersonation (as)'],
  ] as const
  const found = refused.find(([value]) => value !== undefined && value !== null)
  if (found) throw unusable(shown, `uses ${found[1]} for "${name}", which Sandlot does not support`)
}

async function pem<T extends Record<string, unknown>>(
  { value, path }: Found<T>,
  name: string,
  shown: string,
): Promise<string | undefined> {
  const data = value[`${name}-data`]
  const file = value[name]
  const found =
    typeof data === 'string'
      ? Buffer.from(data, 'base64').toString()
      : typeof file === 'string'
        ? await read(path(file), `The ${name} of the kubeconfig`)
        : undefined
  if (found !== undefined && !found.includes('-----BEGIN '))
    throw unusable(shown, `has a ${name} that is not in PEM`)
  return found
}

function tokenOf(path: string): ClusterAccess['authorization'] {
  let last: { at: number; header: Promise<string> } | undefined
  return (refused) => {
    const now = performance.now()
    if (last && !refused && now - last.at < TOKEN_MS) return last.header
    const header = read(path, 'The token for the cluster').then((content) => {
      const token = content.trim()
      if (WORD.test(token)) return `Bearer ${token}`
      throw new SandboxError(
        'engine_unavailable',
        `The file ${path} holds no token for the cluster. ${MAKE_TOKEN}`,
      )
    })
    last = { at: now, header }
    // A failed read is not remembered.
    header.catch(() => {
      if (last?.header === header) last = undefined
    })
    return header
  }
}

async function read(path: string, subject: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new SandboxError(
      'engine_unavailable',
      `${subject} cannot be read (${messageOf(error)}). Name a kubeconfig that this process may read in SANDLOT_KUBERNETES_KUBECONFIG.`,
      { cause: error },
    )
  }
}

function unusable(path: string, why: string, cause?: unknown, remedy = MAKE_TOKEN): SandboxError {
  return new SandboxError('engine_unavailable', `The kubeconfig ${path} ${why}. ${remedy}`, { cause })
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
