/** The parts of the service that routes share, and the context of a request. */
import type { HttpBindings } from '@hono/node-server'
import type { BackgroundAudit } from '@sandlot/storage/audit/background-audit'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { Context } from 'hono'
import type { Agents } from '../agent/agents.ts'
import type { Caller } from '../auth/caller.ts'
import type { ServiceConfig } from '../config.ts'
import type { PeerServices } from '../peers/peer-services.ts'
import type { Limits } from '../auth/limits.ts'
import type { UserTraffic } from '../auth/user-traffic.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Alerts } from '../notifications/alerts.ts'
import type { SendMail } from '../notifications/mail.ts'
import type { Notifications } from '../notifications/notifications.ts'
import type { Push } from '../notifications/push.ts'
import type { Backups } from '../operations/backups.ts'
import type { Checks } from '../operations/checks.ts'
import type { OriginRule } from '../auth/origin.ts'
import type { ExternalSignIn } from '../sign-in/external-sign-in.ts'
import type { PreviewPlaces } from '../previews/places.ts'
import type { Previews } from '../previews/previews.ts'
import type { Removals } from '../people/removals.ts'
import type { Sessions } from '../chat/sessions.ts'
import type { Setup } from '../auth/setup.ts'
import type { Sockets } from '../socket/sockets.ts'
import type { Uploads } from '../chat/uploads.ts'

export interface Parts {
  config: ServiceConfig
  log: Logger
  accounts: AccountsStore
  sessions: Sessions
  uploads: Uploads
  agent: Agents
  sockets: Sockets
  places: PreviewPlaces
  previews: Previews
  removals: Removals
  /** Lines of the audit log that no request waits for. */
  audit: BackgroundAudit
  /** Sign-in by providers. */
  external: ExternalSignIn
  limits: Limits
  traffic: UserTraffic
  metrics: Metrics
  setup: Setup
  /** The other services on the same accounts. */
  peers: PeerServices
  isOurs: OriginRule
  /** Undefined where no SMTP server is set. */
  sendMail: SendMail | undefined
  push: Push
  notifications: Notifications
  alerts: Alerts
  /** Checks of the doctor on the running deployment. */
  checks: Checks
  backups: Backups
  /** The most bytes that may wait for one reader of a stream. */
  slowReaderBytes: number
  /** Aborts when the service stops. */
  stopping: AbortSignal
}

export interface AppEnv {
  Bindings: HttpBindings
  Variables: {
    requestId: string
    /** The client's address. */
    address: string
    /** Set by `requireCaller`. */
    caller: Caller
    /** Looks up the sender of this request again. Set by `requireCaller`. */
    findCallerAgain: () => Promise<Caller>
  }
}

export type Ctx = Context<AppEnv>
