/** Settings of the service. */
import { type Setting, choice, internal, matching, secret, service, TEXT, url } from './setting.ts'

export const SERVICE_SETTINGS = {
  SANDLOT_AGENT_URL: service(
    'where the service finds ai-agent (default: the Unix socket in $SANDLOT_DATA/run)',
    matching(/^(ws|wss|ws\+unix):/, 'must be ws://…, wss://… or ws+unix:///path/agent.sock:/acp'),
  ),
  SANDLOT_SESSIONS_DB: internal(
    service(
      'where the service reads ai-agent’s sessions.db (default: in $SANDLOT_DATA; compose sets it)',
      TEXT,
    ),
  ),
  SANDLOT_WEB_DIST: internal(service('folder of the built web app', TEXT)),
  SANDLOT_PREVIEW_HOST: service(
    'host for previews of apps in sandboxes, like preview.chat.example.org (docs/previews.md)',
    matching(
      /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/,
      'must be a host name like preview.chat.example.org, below which each preview has a name of its own',
    ),
  ),
  SANDLOT_ALLOWED_ORIGINS: service('comma-separated further origins that may open a WebSocket', TEXT),
  SANDLOT_TRUSTED_PROXIES: service(
    'comma-separated addresses and networks (CIDR) of proxies whose X-Forwarded-For is trusted; own-networks: with SANDLOT_PUBLIC_URL, the networks of this machine or container (default: with SANDLOT_PUBLIC_URL 127.0.0.0/8 and ::1; compose sets own-networks)',
    TEXT,
  ),
  SANDLOT_OIDC: secret(
    service('JSON: identity providers, [{name, issuer, clientId, clientSecret, …}] (docs/sign-in.md)', TEXT),
  ),
  SANDLOT_LOCAL_SIGN_IN: service(
    'admins: only administrators sign in with a password',
    choice('all', 'admins'),
    'all',
  ),
  SANDLOT_METRICS_TOKEN: secret(
    service(
      'bearer token for /metrics from other machines',
      matching(/^[^]{16,}$/, 'must have at least 16 characters'),
    ),
  ),
  SANDLOT_SMTP_URL: secret(
    service(
      'server for e-mail: smtp://user:password@mail.example.org:587 (STARTTLS, which a password needs) or smtps://… (default: no e-mail)',
      url(/^smtps?$/, 'must be smtp://user:password@mail.example.org:587 or smtps://…'),
    ),
  ),
  SANDLOT_MAIL_FROM: service('sender of e-mail, like Sandlot <sandlot@example.org>', TEXT),
  SANDLOT_ALERT_EMAIL: service(
    'comma-separated addresses to notify of failures and recoveries (docs/watching.md)',
    TEXT,
  ),
  SANDLOT_ALERT_WEBHOOK: service(
    'URL for the same notifications, signed',
    url(/^https?$/, 'must be an http(s) address like https://hooks.example.org/sandlot'),
  ),
} as const satisfies Record<string, Setting>
