/** Settings of the service. */
import { type Setting, choice, matching, TEXT, url } from './setting.ts'

export const SERVICE_SETTINGS = {
  SANDLOT_AGENT_URL: {
    meaning: 'where the service finds ai-agent (default: the Unix socket in $SANDLOT_DATA/run)',
    schema: matching(/^(ws|wss|ws\+unix):/, 'must be ws://…, wss://… or ws+unix:///path/agent.sock:/acp'),
    processes: ['service'],
  },
  SANDLOT_SESSIONS_DB: {
    meaning: 'where the service reads ai-agent’s sessions.db (default: in $SANDLOT_DATA; compose sets it)',
    schema: TEXT,
    processes: ['service'],
    internal: true,
  },
  SANDLOT_WEB_DIST: {
    meaning: 'folder of the built web app',
    schema: TEXT,
    processes: ['service'],
    internal: true,
  },
  SANDLOT_PREVIEW_HOST: {
    meaning: 'host for previews of apps in sandboxes, like preview.chat.example.org (docs/previews.md)',
    schema: matching(
      /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/,
      'must be a host name like preview.chat.example.org, below which each preview has a name of its own',
    ),
    processes: ['service'],
  },
  SANDLOT_ALLOWED_ORIGINS: {
    meaning: 'comma-separated further origins that may open a WebSocket',
    schema: TEXT,
    processes: ['service'],
  },
  SANDLOT_TRUSTED_PROXIES: {
    meaning:
      'comma-separated addresses and networks (CIDR) of proxies whose X-Forwarded-For is trusted; own-networks: with SANDLOT_PUBLIC_URL, the networks of this machine or container (default: with SANDLOT_PUBLIC_URL 127.0.0.0/8 and ::1; compose sets own-networks)',
    schema: TEXT,
    processes: ['service'],
  },
  SANDLOT_OIDC: {
    meaning: 'JSON: identity providers, [{name, issuer, clientId, clientSecret, …}] (docs/sign-in.md)',
    schema: TEXT,
    processes: ['service'],
    secret: true,
  },
  SANDLOT_LOCAL_SIGN_IN: {
    meaning: 'admins: only administrators sign in with a password',
    schema: choice('all', 'admins'),
    default: 'all',
    processes: ['service'],
  },
  SANDLOT_METRICS_TOKEN: {
    meaning: 'bearer token for /metrics from other machines',
    schema: matching(/^[^]{16,}$/, 'must have at least 16 characters'),
    processes: ['service'],
    secret: true,
  },
  SANDLOT_SMTP_URL: {
    meaning:
      'server for e-mail: smtp://user:password@mail.example.org:587 (STARTTLS, which a password needs) or smtps://… (default: no e-mail)',
    schema: url(/^smtps?$/, 'must be smtp://user:password@mail.example.org:587 or smtps://…'),
    processes: ['service'],
    secret: true,
  },
  SANDLOT_MAIL_FROM: {
    meaning: 'sender of e-mail, like Sandlot <sandlot@example.org>',
    schema: TEXT,
    processes: ['service'],
  },
  SANDLOT_ALERT_EMAIL: {
    meaning: 'comma-separated addresses to notify of failures and recoveries (docs/watching.md)',
    schema: TEXT,
    processes: ['service'],
  },
  SANDLOT_ALERT_WEBHOOK: {
    meaning: 'URL for the same notifications, signed',
    schema: url(/^https?$/, 'must be an http(s) address like https://hooks.example.org/sandlot'),
    processes: ['service'],
  },
} as const satisfies Record<string, Setting>
