/** Compares a Pod with what was asked for: webhooks and other makers may have changed it. */
import { SandboxError } from '../../errors.ts'
import type { Pod } from './objects.ts'

/**
 * Members that the API server and its built-in admission add to every Pod, as paths with `*` for
 * positions in a list. Everything else that differs is refused.
 */
const ADDED = new Set([
  'nodeName',
  'schedulerName',
  'serviceAccountName',
  'serviceAccount',
  'preemptionPolicy',
  'priority',
  'priorityClassName',
  'overhead',
  'nodeSelector',
  'affinity',
  'imagePullSecrets',
  'schedulingGates',
  // By the plug-in AlwaysPullImages; the image is named by its digest.
  'containers.*.imagePullPolicy',
  'initContainers.*.imagePullPolicy',
  'containers.*.terminationMessagePolicy',
  'initContainers.*.terminationMessagePolicy',
])

/** Undefined where `made` is what was asked for, apart from additions of the list. */
export function checkAdmitted(asked: Pod, made: Pod): SandboxError | undefined {
  const changed = differences(asked.spec, made.spec, '').filter((path) => !isAdded(path))
  if (changed.length === 0) return undefined
  return new SandboxError(
    'unsafe_host',
    `The cluster's admission changed the Pod ${made.metadata.name} (${changed.slice(0, 5).join(', ')}), so it was not started. Exempt the namespace of the sandboxes from the webhook that does this, and bind the chart's policy.`,
  )
}

/** Members that depend on the claim alone, not on the version or the settings of this backend. */
const OWN =
  /^(?:host(?:Network|PID|IPC)|securityContext\.runAsUser|containers\.\d+(?:\.(?:name|image|command.*))?|volumes\.\d+\.persistentVolumeClaim.*)$/

/** A Pod under our name and labels may be of another maker. `asked`: by the slot’s claim. */
export function checkOwn(asked: Pod | undefined, running: Pod): SandboxError | undefined {
  const { name } = running.metadata
  const changed = asked && differences(asked.spec, running.spec, '').filter((path) => OWN.test(path))
  if (changed?.length === 0) return undefined
  return new SandboxError(
    'unsafe_host',
    `The Pod ${name} is of another maker (${changed?.slice(0, 5).join(', ') ?? 'no claim of a home names it'}), so it is not used. Find out who made it, then delete it: kubectl delete pod ${name}`,
  )
}

/** Tolerations may only be added: they decide about nodes, not about what runs. */
function isAdded(path: string): boolean {
  const general = path.replaceAll(/\.\d+/g, '.*')
  return ADDED.has(general) || /^tolerations\.\d+$/.test(path)
}

/** Paths of the members that differ. */
function differences(asked: unknown, made: unknown, path: string): string[] {
  if (isRecord(asked) && isRecord(made)) {
    const names = new Set([...Object.keys(asked), ...Object.keys(made)])
    return [...names].flatMap((name) =>
      differences(asked[name], made[name], path === '' ? name : `${path}.${name}`),
    )
  }
  const isQuantity = /\.(?:requests|limits)\.\w+$|\.sizeLimit$/.test(path)
  return asked === made || (isQuantity && amount(asked) === amount(made)) ? [] : [path]
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const SUFFIXES: Record<string, number> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** The API server writes a quantity its own way: `2000000000` comes back as `2G`. */
function amount(quantity: unknown): number {
  const [, digits, suffix = ''] = /^([\d.]+)([A-Za-z]*)$/.exec(String(quantity)) ?? []
  return Number(digits) * (suffix === '' ? 1 : (SUFFIXES[suffix] ?? Number.NaN))
}
