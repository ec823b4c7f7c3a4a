import type { Command } from '../context.ts'
import { SYSTEMD, installUnit } from '../systemd/install-unit.ts'

/** systemd starts Sandlot at boot; `--remove` takes that back, `--print` only shows the unit. */
export const install: Command = (context) => installUnit(context, SYSTEMD)
