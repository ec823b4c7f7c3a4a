/** The claims of a deployment: one for each slot, its home and what is known of its sandbox. */
import type { BackendVolumes, SandboxOwner, SandboxSpec } from '../../backend.ts'
import { SandboxError, workspaceMissing } from '../../errors.ts'
import { LABEL } from '../../names.ts'
import type { KubernetesApi } from './api.ts'
import { KubernetesError } from './api-error.ts'
import { sandboxAnnotations } from './claim-template.ts'
import { KEY, objectLabels, ownerLabels, ownerOf, readLabels } from './labels.ts'
import { type PatchOperation, type PersistentVolumeClaim } from './objects.ts'
import { isEnding, isSandboxOf, workspaceOf } from './sandboxes-of.ts'
import type { Cache } from './watch.ts'

/** Milliseconds until a claim must be gone: a Pod that uses it holds it. */
const REMOVAL_MS = 60_000
/** Others that change a claim at the same moment: the controllers of volumes, and other agents. */
const TRIES = 8

/** Path of a label or an annotation in a JSON patch. */
const keyPath = (kind: 'labels' | 'annotations', key: string): string =>
  `/metadata/${kind}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`

/** A key can be added to a map that exists. */
const NO_ANNOTATIONS: PatchOperation = { op: 'add', path: '/metadata/annotations', value: {} }

/** Operations that set these keys. */
export const setting = (kind: 'labels' | 'annotations', values: Record<string, string>): PatchOperation[] =>
  Object.entries(values).map(([key, value]) => ({ op: 'add', path: keyPath(kind, key), value }))

/** The patched object must be the one that was read. */
const unchanged = ({ metadata }: PersistentVolumeClaim): PatchOperation => ({
  op: 'test',
  path: '/metadata/resourceVersion',
  value: metadata.resourceVersion,
})

interface ClaimsOptions {
  api: KubernetesApi
  deployment: string
  cache: Cache<PersistentVolumeClaim>
  claimOf: (spec: SandboxSpec) => PersistentVolumeClaim
}

export class Claims implements BackendVolumes {
  /** A volume of a cluster is removed by its driver. */
  readonly emptyFirst = false
  readonly #api: KubernetesApi
  readonly #deployment: string
  readonly #cache: Cache<PersistentVolumeClaim>
  readonly #claimOf: (spec: SandboxSpec) => PersistentVolumeClaim

  constructor({ api, deployment, cache, claimOf }: ClaimsOptions) {
    this.#api = api
    this.#deployment = deployment
    this.#cache = cache
    this.#claimOf = claimOf
  }

  async list() {
    return (await this.#cache.list()).filter((claim) => !isEnding(claim)).map(workspaceOf)
  }

  async has(name: string, signal?: AbortSignal): Promise<boolean> {
    const claim = await this.#read(name, signal)
    return claim !== undefined && this.#isOurs(claim) && !isEnding(claim)
  }

  async ensure(spec: SandboxSpec, signal?: AbortSignal): Promise<void> {
    await this.#find(spec, signal)
  }

  async remove(name: string): Promise<void> {
    const claim = await this.#read(name)
    if (claim === undefined) return
    if (!this.#isOurs(claim)) throw notOurs(name)
    try {
      await this.#cache.remove(name, { uid: claim.metadata.uid })
    } catch (error) {
      if (!(error instanceof KubernetesError && [403, 422].includes(error.status))) throw error
      throw new SandboxError(
        'permission',
        `The claim ${name} had an owner, so only a person removes it: kubectl delete pvc ${name} --namespace ${this.#api.access.namespace}`,
        { cause: error },
      )
    }
    await this.#cache.until(name, (left) => left === undefined, { doing: `remove ${name}`, ms: REMOVAL_MS })
  }

  /** The claim of this sandbox’s slot; undefined where there is none. Asks the API. */
  async ofSandbox(id: string, signal?: AbortSignal): Promise<PersistentVolumeClaim | undefined> {
    const claim = await this.#read(id.replace(/-\d+$/, ''), signal)
    return claim !== undefined && this.#isOurs(claim) && isSandboxOf(claim, id) ? claim : undefined
  }

  /** Makes the spec’s sandbox the one of its slot, in a new claim where the spec allows one. */
  async begin(spec: SandboxSpec, fingerprint: string, signal?: AbortSignal): Promise<void> {
    const annotations = sandboxAnnotations(this.#deployment, spec)
    const labels = objectLabels(this.#deployment, spec, fingerprint)
    const owner = ownerOf(this.#deployment, spec)
    await this.#change(await this.#find(spec, signal), (claim) => [
      ...checkedOwner(claim, owner),
      ...(claim.metadata.annotations === undefined ? [NO_ANNOTATIONS] : []),
      ...setting('annotations', changed(annotations, claim.metadata.annotations)),
      ...setting('labels', changed(labels, claim.metadata.labels)),
      ...profileRemoval(claim, labels),
    ])
  }

  /** The slot has no sandbox any more, unless it has another one by now. */
  async end(id: string): Promise<void> {
    const claim = await this.ofSandbox(id)
    if (claim === undefined) return
    await this.#change(claim, (now) =>
      isSandboxOf(now, id) ? [{ op: 'remove', path: keyPath('annotations', KEY.sandbox) }] : [],
    )
  }

  /** Names the owner of this claim’s sandbox. Rejects with `ledger` where it is someone else. */
  async setOwner(claim: PersistentVolumeClaim, owner: SandboxOwner): Promise<void> {
    await this.#change(claim, (now) => [
      ...checkedOwner(now, owner),
      ...setting('labels', changed(ownerLabels(owner), now.metadata.labels)),
    ])
  }

  /** Repeated while others change the claim: its volume is being made, for example. */
  async #change(
    claim: PersistentVolumeClaim,
    operationsFor: (claim: PersistentVolumeClaim) => PatchOperation[],
  ): Promise<void> {
    let current: PersistentVolumeClaim | undefined = claim
    for (let tries = 0; current !== undefined; tries += 1) {
      const operations = operationsFor(current)
      if (operations.length === 0) return
      try {
        await this.#cache.patch(claim.metadata.name, [unchanged(current), ...operations])
        return
      } catch (error) {
        if (!(error instanceof KubernetesError && error.outrun) || tries === TRIES) throw error
      }
      current = await this.#read(claim.metadata.name)
    }
    throw workspaceMissing(claim.metadata.name)
  }

  async #find(spec: SandboxSpec, signal?: AbortSignal): Promise<PersistentVolumeClaim> {
    const found = await this.#read(spec.volume, signal)
    if (found === undefined) {
      if (spec.hasWorkspace) throw workspaceMissing(spec.volume)
      try {
        const claim = this.#claimOf(spec)
        // There is no sandbox yet: `begin` names one.
        return await this.#cache.create(
          { ...claim, metadata: { ...claim.metadata, annotations: {} } },
          signal,
        )
      } catch (error) {
        if (!(error instanceof KubernetesError && error.reason === 'AlreadyExists')) throw error
        return this.#find(spec, signal)
      }
    }
    if (!this.#isOurs(found) || readLabels(found.metadata.labels ?? {})[LABEL.slot] !== spec.slot)
      throw notOurs(spec.volume)
    // Its files are about to be removed for good, on a person’s request.
    if (isEnding(found)) throw workspaceMissing(spec.volume)
    if (found.status?.phase === 'Lost')
      throw new SandboxError(
        'workspace_unreachable',
        `The volume behind the claim ${spec.volume} is lost, so nothing was started. Bring that volume back, or restore the workspace from a backup.`,
      )
    return found
  }

  #read(name: string, signal?: AbortSignal): Promise<PersistentVolumeClaim | undefined> {
    return this.#cache.ask(name, signal)
  }

  #isOurs({ metadata }: PersistentVolumeClaim): boolean {
    const labels = readLabels(metadata.labels ?? {})
    return labels[LABEL.deployment] === this.#deployment && labels[LABEL.role] === 'sandbox'
  }
}

/**
 * No operation. Throws `ledger` where the claim is someone else’s, and `exists` where it has a
 * sandbox of a later generation.
 */
function checkedOwner({ metadata }: PersistentVolumeClaim, owner: SandboxOwner | undefined): [] {
  const { [KEY.owner]: tag, [KEY.generation]: generation = '0' } = metadata.labels ?? {}
  if (tag === undefined) return []
  if (tag !== owner?.tag)
    throw new SandboxError(
      'ledger',
      `The ledger gives the workspace ${metadata.name} to this user, but on the cluster it is someone else’s. Nothing was touched: restore the ledger.`,
    )
  if (Number(generation) <= owner.generation) return []
  throw new SandboxError(
    'exists',
    `The workspace ${metadata.name} has a sandbox of the later generation ${generation}. Try again.`,
  )
}

/** Those of `wanted` that are not so yet. */
function changed(wanted: Record<string, string>, now: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => now[key] !== value))
}

/** A sandbox with the default profile has no label of one. */
function profileRemoval(
  { metadata }: PersistentVolumeClaim,
  labels: Record<string, string>,
): PatchOperation[] {
  const key = 'sandlot.dev/profile'
  return metadata.labels?.[key] === undefined || labels[key] !== undefined
    ? []
    : [{ op: 'remove', path: keyPath('labels', key) }]
}

function notOurs(name: string): SandboxError {
  return new SandboxError(
    'exists',
    `The claim ${name} belongs to something else. Remove it, or give it another name.`,
  )
}
