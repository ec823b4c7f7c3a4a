/** Checks of `./sandlot doctor` on the running deployment: the service's own, and the agent's. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'
import { failed, type Finding, inOrder } from '@sandlot/shared/base/finding'
import {
  auditChecks,
  backupCheck,
  dataFolderCheck,
  nodeCheck,
  unreadAudit,
} from '@sandlot/shared/node/checks/deployment'
import { publicUrlCheck } from '@sandlot/shared/node/checks/public-url'
import { signInChecks } from '@sandlot/shared/node/checks/sign-in'
import type { AuditChains } from '@sandlot/shared/admin/audit'
import type { ChecksView } from '@sandlot/shared/admin/checks'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { Sessions } from '../chat/sessions.ts'
import type { ServiceConfig } from '../config.ts'

interface ChecksParts {
  config: Pick<ServiceConfig, 'dataFolder' | 'backupStatusFile' | 'publicUrl' | 'providers'>
  /** The address of this service, where no public one is set. */
  url: () => string
  accounts: Pick<AccountsStore, 'audit'>
  sessions: Pick<Sessions, 'reader'>
}

/** Reads every line of both logs. */
export async function readChains({
  accounts,
  sessions,
}: Pick<ChecksParts, 'accounts' | 'sessions'>): Promise<AuditChains> {
  const agents = (await sessions.reader()).admin.audit
  return {
    chains: [
      { source: 'agent', ...(await agents.check()) },
      { source: 'service', ...(await accounts.audit.check()) },
    ],
  }
}

export class Checks {
  readonly #parts: ChecksParts
  #last: ChecksView['last'] = null
  #running: Promise<ChecksView> | undefined

  constructor(parts: ChecksParts) {
    this.#parts = parts
  }

  get view(): ChecksView {
    return { last: this.#last }
  }

  /** Look now; a second one joins the first. `ofAgent`: what the agent finds. Never rejects. */
  run(ofAgent: () => Promise<readonly Finding[]>): Promise<ChecksView> {
    this.#running ??= this.#run(ofAgent).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #run(ofAgent: () => Promise<readonly Finding[]>): Promise<ChecksView> {
    const { config, url } = this.#parts
    const own = [
      nodeCheck(),
      dataFolderCheck(config.dataFolder),
      // The folder of backups may be another container’s.
      backupCheck(config.backupStatusFile, (file) => existsSync(file) || !existsSync(dirname(file))),
    ]
    const all = await Promise.all([
      ofAgent().catch((error: unknown) => [agentIsAway(error)]),
      readChains(this.#parts).then(auditChecks, (error: unknown) => [unreadAudit(error)]),
      publicUrlCheck(config.publicUrl),
      signInChecks(config.providers, config.publicUrl ?? url()),
    ])
    // Both processes say the same of a folder and of a Node that they share.
    const findings = [
      ...new Map([...own, ...all.flat()].map((one) => [`${one.id} ${one.message}`, one])).values(),
    ]
    this.#last = { at: Date.now(), findings: inOrder(findings) }
    return this.view
  }
}

function agentIsAway(error: unknown): Finding {
  return failed(
    'must',
    'agent',
    'Agent',
    `it does not answer, so nothing is known of the engine and the sandboxes (${messageOf(error)})`,
    'Look at its log: log/ai-agent.log of the data directory, or docker compose logs ai-agent.',
  )
}
