/** Failures of the cluster's API in words: which one it was, and what to do. */
import { SandboxError, type SandboxErrorCode, workspaceMissing } from '../../errors.ts'
import type { Status } from './objects.ts'

/** An answer of the API server that is a failure. */
export class KubernetesError extends SandboxError {
  /** The HTTP status. */
  readonly status: number
  /** From its `Status`, for example `AlreadyExists`; empty where the answer was none. */
  readonly reason: string
  /** Another writer changed the object first: read it again, and decide again. */
  readonly outrun: boolean

  constructor(code: SandboxErrorCode, message: string, status: number, body: Status | undefined) {
    // A proxy, or a server that starts, stops, is overloaded or has lost its store.
    super(code, message, { unreachable: status === 429 || status >= 500 })
    this.status = status
    this.reason = body?.reason ?? ''
    this.outrun = isOutrun(status, body)
  }
}

/** `doing` completes “could not …”, for example `create the Pod sbx-1`. */
export function answerError(status: number, body: string, doing: string): KubernetesError {
  const parsed = parseStatus(body)
  const [code, message] = parsed ? inWords(status, parsed, doing) : notKubernetes(status, body, doing)
  return new KubernetesError(code, message, status, parsed)
}

/** A failed `test` of a JSON patch has no reason of its own and, unlike other 422, no object. */
function isOutrun(status: number, body: Status | undefined): boolean {
  return (
    (status === 409 && body?.reason === 'Conflict') || (status === 422 && body?.details?.name === undefined)
  )
}

type Words = [code: SandboxErrorCode, message: string]

function parseStatus(body: string): Status | undefined {
  try {
    const value: unknown = JSON.parse(body)
    const isStatus = typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Status'
    return isStatus ? (value as Status) : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function notKubernetes(status: number, body: string, doing: string): Words {
  const start = shorten(body.replaceAll(/\s+/g, ' ').trim(), 120)
  return [
    'engine_unavailable',
    status >= 500
      ? `A proxy before the cluster could not ${doing} (HTTP ${status}: ${start}). Try again; if it persists, check that proxy and the API server.`
      : `The server that was to ${doing} is no Kubernetes API server, or a proxy answered for it (HTTP ${status}: ${start}). Check the server’s address in the kubeconfig.`,
  ]
}

function inWords(status: number, body: Status, doing: string): Words {
  const message = shorten(body.message ?? '', 600)
  const refused = `The cluster refused to ${doing}`
  if (isOutrun(status, body))
    return [
      'engine_unavailable',
      `${refused}, because another writer changed it at the same moment. Try again.`,
    ]
  switch (status) {
    case 401:
      return [
        'engine_unavailable',
        `${refused}, because it does not accept the agent’s token or certificate (any more). Make a new one, or check that its ServiceAccount still exists.`,
      ]
    case 400:
    case 403:
    case 422:
      return refusal(message, refused)
    case 404:
      return notFound(body, message, doing)
    case 409:
      return ['exists', `${refused}, because there is one of that name: ${message}.`]
    case 410:
      return ['engine_unavailable', `${refused}, because it has forgotten that state: ${message}. Try again.`]
    case 429:
      return [
        'engine_unavailable',
        `The cluster’s API server is overloaded and did not ${doing}. Try again later.`,
      ]
    default:
      return [
        'engine_unavailable',
        `The cluster could not ${doing} (HTTP ${status}): ${message}. Try again; if it persists, check the API server’s log.`,
      ]
  }
}

/** Refusals by their message: its parts in brackets, in the order of the sentence. */
const REFUSALS: readonly {
  pattern: RegExp
  code?: SandboxErrorCode
  words: (...parts: (string | undefined)[]) => string
}[] = [
  {
    pattern: /exceeded quota: ([^,]+), (.*)$/s,
    code: 'host_full',
    words: (quota, used) =>
      `, because the quota "${quota}" of its namespace is used up (${used}). Stop a sandbox that is not needed, or ask for a larger ResourceQuota.`,
  },
  {
    pattern:
      /User "([^"]*)" cannot (\w+) resource "([^"]*)" in API group "[^"]*"(?: in the (namespace "[^"]*"))?/,
    words: (user, verb, resource, namespace = 'whole cluster') =>
      `, because ${user} may not ${verb} ${resource} in the ${namespace}. Install the chart’s Role and its binding there (docs/kubernetes.md).`,
  },
  {
    pattern: /ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: (.*)$/s,
    words: (policy, why) =>
      `: its policy ${policy} does not allow that (${why}). Install the chart of this version, whose policy fits.`,
  },
  {
    pattern: /admission webhook "([^"]*)" denied the request(?: without explanation|: (.*))$/s,
    words: (webhook, why = 'it gave no reason') =>
      `: its admission webhook ${webhook} does not allow that (${why}). Exempt the namespace of the sandboxes from it.`,
  },
  {
    pattern: /violates PodSecurity "([^"]*)": (.*)$/s,
    words: (level, why) =>
      `: the namespace enforces PodSecurity "${level}" (${why}). Label it as the chart does, or set SANDLOT_KUBERNETES_NETWORK_DOWN=false.`,
  },
  {
    pattern: /unable to create new content in namespace (\S+) because it is being terminated/,
    words: (namespace) =>
      `, because the namespace ${namespace} is being deleted. Make it again once it is gone.`,
  },
  {
    pattern: /RuntimeClass "([^"]*)" not found/,
    words: (name) =>
      `, because it has no RuntimeClass "${name}". Make it, or set SANDLOT_SANDBOX_RUNTIME to one that "kubectl get runtimeclass" lists.`,
  },
]

function refusal(message: string, refused: string): Words {
  for (const { pattern, code = 'engine_unavailable', words } of REFUSALS) {
    const match = pattern.exec(message)
    if (match) return [code, refused + words(...match.slice(1))]
  }
  return ['engine_unavailable', `${refused} as it is: ${message}`]
}

function notFound(body: Status, message: string, doing: string): Words {
  const { kind, name = '' } = body.details ?? {}
  switch (kind) {
    case 'namespaces':
      return [
        'engine_unavailable',
        `The cluster could not ${doing}, because there is no namespace ${name}. Install the chart, or name another in SANDLOT_KUBERNETES_NAMESPACE.`,
      ]
    case 'pods':
      return ['sandbox_lost', `The sandbox no longer exists on the cluster: ${message}.`]
    case 'persistentvolumeclaims':
      return ['workspace_missing', workspaceMissing(name).message]
    default:
      return [
        'engine_unavailable',
        `The cluster could not ${doing}: ${message || 'it has no such resource'}.`,
      ]
  }
}

const FOREIGN = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
])
/** No server of the cluster is reached, whatever is tried. */
const CLOSED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])

/** A request had no answer. */
export function connectionError(error: unknown, server: URL, doing: string): SandboxError {
  if (error instanceof SandboxError) return error
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  const detail = error instanceof Error ? error.message : String(error)
  const at = `The API server at ${server.host}`
  const setting = tlsProblem(code, detail)
  if (setting !== undefined)
    return new SandboxError('engine_unavailable', `${at} ${setting}`, { cause: error })
  return new SandboxError(
    'engine_unavailable',
    CLOSED.has(code)
      ? `${at} cannot be reached (${code}). It is tried again; check that it runs, that its address in the kubeconfig is right, and that no firewall lies between.`
      : `The connection to the API server at ${server.host} broke while trying to ${doing}: ${detail || code}. Try again; if it persists, check the API server.`,
    { cause: error, unreachable: true },
  )
}

function tlsProblem(code: string, detail: string): string | undefined {
  if (FOREIGN.has(code))
    return `has a certificate of another authority than the kubeconfig names (${code}). Take certificate-authority-data from that cluster’s own kubeconfig.`
  if (code === 'CERT_HAS_EXPIRED')
    return 'has a certificate that has expired. Renew it on the cluster, and check the clock of this machine.'
  if (code === 'CERT_NOT_YET_VALID')
    return 'has a certificate that is not valid yet. Check the clocks of this machine and of the cluster.'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `has a certificate for other names (${detail}). Use one of those as the server in the kubeconfig, or name one as tls-server-name.`
  if (code === 'EPROTO' || code.startsWith('ERR_SSL'))
    return `does not speak TLS as expected (${detail}). Check its address and port in the kubeconfig.`
  if (code.startsWith('ERR_OSSL') || code === 'ERR_INVALID_CHAR')
    return `cannot be shown the certificate, key or token of the kubeconfig (${detail}). Make a new one.`
  return undefined
}

/** The API server took longer than a call's deadline. */
export function lateError(server: URL, doing: string, ms: number): SandboxError {
  return new SandboxError(
    'engine_unavailable',
    `The API server at ${server.host} did not ${doing} within ${Math.round(ms / 1_000)} s. It may be overloaded or stuck; try again, then check its log.`,
    { unreachable: true },
  )
}

function shorten(message: string, most: number): string {
  return message.length <= most ? message : `${message.slice(0, most)} …`
}
