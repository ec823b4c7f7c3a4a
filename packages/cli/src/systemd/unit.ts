/** The systemd unit that starts Sandlot at boot: `./sandlot up`, ended as by `down`. */

interface UnitParts {
  /** The checkout. No path here has a character that a unit file gives a meaning. */
  root: string
  data: string
  keys: string
  /** Where backups go, where that is set; it may not be there yet. */
  backups: string | undefined
  /** Who has run `up` here. */
  user: string
  /** Their home: npm has its cache in it, which `up` needs. */
  home: string
  group: string
  /** Groups beside the user's own, for the engine's socket. */
  moreGroups: readonly string[]
  /** Folders of programs: `up` needs Node and npx. */
  path: string
  /** Whether the engine is this machine's own, so that it starts first. */
  localEngine: boolean
  port: number
}

/** Of {@link unitText}; by it a unit is known as ours. */
export const UNIT_MARK = '# Written by ./sandlot install in '
/** As long as `up` may take to end its processes, and a little, like `down`. */
const STOP_SECONDS = 90

/**
 * SIGTERM goes to the launcher alone, which ends agent, service and gate in order and leaves
 * prompts to the next start. Memory must stay executable for Node's compiler.
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

# Ends as ./sandlot down does; ./sandlot down itself ends it too, and it stays down.
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
PrivateTmp=yes
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
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`
}
