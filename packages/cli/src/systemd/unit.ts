/** The systemd unit that runs `./sandlot up` at boot, and stops it like `down`. */

interface UnitParts {
  /** The checkout. No path here has a special character of unit files. */
  root: string
  data: string
  keys: string
  /** Folder of backups, if that is set; it may not exist yet. */
  backups: string | undefined
  /** User who ran `up` here. */
  user: string
  /** Home of the user, with npm's cache. */
  home: string
  group: string
  /** Supplementary groups, for the engine's socket. */
  moreGroups: readonly string[]
  /** PATH with Node and npx. */
  path: string
  /** The engine runs on this machine, so it starts first. */
  localEngine: boolean
  port: number
}

/** First line of {@link unitText}, which identifies our unit. */
export const UNIT_MARK = '# Written by ./sandlot install in '
/** The time `up` may take to stop its children, and some more, like in `down`. */
const STOP_SECONDS = 90

/** Memory stays executable, for Node's compiler. */
const HARDENING = `PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM`

/**
 * SIGTERM goes only to the launcher, which stops agent, service and gate in order; the next start
 * resumes prompts.
 */
export function unitText(parts: UnitParts): string {
  const { root, data, keys, backups, user, home, group, moreGroups, path, localEngine, port } = parts
  const writable = [
    root,
    data,
    ...(keys.startsWith(`${data}/`) ? [] : [keys]),
    ...(backups === undefined ? [] : [`-${backups}`]),
    `-${home}/.npm`,
  ].join(' ')
  const low = port < 1024
  return `${UNIT_MARK}${root}
[Unit]
Description=Sandlot, a team chat with an AI agent
Wants=network-online.target${localEngine ? ' docker.service' : ''}
After=network-online.target${localEngine ? ' docker.service' : ''}
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=exec
User=${user}
Group=${group}
${moreGroups.length === 0 ? '' : `SupplementaryGroups=${moreGroups.join(' ')}\n`}WorkingDirectory=${root}
ExecStart=${root}/sandlot up
Environment=PATH=${path}

# A stop is the same as ./sandlot down, after which it is not restarted either.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=${STOP_SECONDS}
SuccessExitStatus=130 143
Restart=on-failure
RestartSec=10

NoNewPrivileges=yes
CapabilityBoundingSet=${low ? 'CAP_NET_BIND_SERVICE' : ''}
AmbientCapabilities=${low ? 'CAP_NET_BIND_SERVICE' : ''}
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths=${writable}
${HARDENING}

[Install]
WantedBy=multi-user.target
`
}
