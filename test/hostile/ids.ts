/** Every id of the table of hostile inputs that no row here has: which test file holds it, or why there is none. */

/** The ids of the table, class by class. */
export const IDS = [
  ...'E01 E02 E03 E04 E06 E07 E08 E09 E10 E11 E13 E14 E15 E17 E18 E20 E22 E24 E25 E26 E27 E29 E30'.split(' '),
  ...'P01 P02 P04 P05 P06 P08 P09 P10 P12'.split(' '),
  ...'R01 R02 R04 R05 R06 R07 R09 R10 R12 R13 R14 R16 R18 R19 R20 R22 R23 R24 R27 R28'.split(' '),
  ...'F01 F02 F03 F05 F06 F08 F10 F11 F12 F13 F15'.split(' '),
  ...'N01 N02 N03 N04 N05 N06 N07 N08 N09 N10 N11 N12'.split(' '),
  ...'I01 I02 I04 I06 I08 I09 I10 I11 I12'.split(' '),
  ...'T01 T03 T04 T05 T07'.split(' '),
  ...'A01 A03 A04 A06'.split(' '),
]

/** Rows that another test plays: the file, from the repository's root. */
export const ELSEWHERE: Record<string, string> = {
  P08: 'packages/sandbox/test/contract/retries.ts',
  P12: 'packages/sandbox/test/sbxd/hostile-sbxd.test.ts',
  R14: 'packages/sandbox/test/sbxd/disk.engine.test.ts',
  R16: 'packages/sandbox/test/sbxd/disk.engine.test.ts',
  ...Object.fromEntries(
    ['N01', 'N02', 'N03', 'N04', 'N05', 'N06', 'N07', 'N08', 'N09', 'N10', 'N11', 'N12'].map((id) => [
      id,
      'packages/sandbox/test/egress/egress.engine.test.ts',
    ]),
  ),
  T03: 'packages/web/test/markdown/markdown.test.ts',
  A01: 'packages/engine-gate/test/creation.test.ts',
  A03: 'packages/engine-gate/test/gate.test.ts',
  A04: 'packages/engine-gate/test/gate.test.ts',
  A06: 'packages/engine-gate/test/creation.test.ts',
  'X-A1': 'packages/ai-agent/test/approval/path-pattern.test.ts',
  'X-A2': 'packages/ai-agent/test/agent/watchdog.test.ts',
  'X-A3': 'packages/ai-agent/test/session/store-budget.test.ts',
  'X-A4': 'packages/service/test/http/connection-limits.test.ts',
  'X-A5': 'packages/service/test/auth/limits.test.ts',
}

/** Rows that no test plays, and why. */
export const DECLARED: Record<string, string> = {
  F15: 'The product unpacks nothing: a folder goes out as tar and files come in one by one.',
  T07: 'Optional, and not wanted: what a command prints goes to the person whose files it comes from and to the model that asked for it, which needs it whole (a hidden value that it writes back destroys a file); a pattern misses a secret in base64 or in two parts, so hiding would promise what it cannot hold. Logs, which go to others, are scrubbed.',
}
