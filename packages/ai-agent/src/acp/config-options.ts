/** What a client may choose for a session: its mode, as ACP's modes and as a config option, and the model. */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/errors'
import { MODES, type Mode, mode as modeShape } from '@sandlot/shared/mode'
import type { Session } from '../session.ts'
import { parseParams } from './errors.ts'

const MODE_NAMES: Record<Mode, { name: string; description: string }> = {
  manual: { name: 'Ask', description: 'Reading runs; everything else asks first.' },
  'auto-edit': { name: 'Auto-edit', description: 'Reading and editing files run; commands ask first.' },
  yolo: { name: 'Yolo', description: 'Everything runs without asking.' },
}

/** Whether somebody with this ceiling may choose the mode. */
export function allows(ceiling: Mode | undefined, mode: Mode): boolean {
  return ceiling === undefined || MODES.indexOf(mode) <= MODES.indexOf(ceiling)
}

export function modesOf(session: Session, ceiling: Mode | undefined): SessionModeState {
  return {
    currentModeId: session.mode,
    availableModes: MODES.filter((mode) => allows(ceiling, mode)).map((id) => ({ id, ...MODE_NAMES[id] })),
  }
}

/** The complete list, with what is chosen. */
export function configOptionsOf(
  session: Session,
  ceiling: Mode | undefined,
  model: string,
): SessionConfigOption[] {
  return [
    {
      id: 'mode',
      name: 'Mode',
      description: 'What runs without asking.',
      category: 'mode',
      type: 'select',
      currentValue: session.mode,
      options: MODES.filter((mode) => allows(ceiling, mode)).map((value) => ({
        value,
        ...MODE_NAMES[value],
      })),
    },
    {
      id: 'model',
      name: 'Model',
      description: 'Chosen by whoever runs this Sandlot.',
      category: 'model',
      type: 'select',
      currentValue: model,
      options: [{ value: model, name: model }],
    },
  ]
}

/** Throws `bad_request` for what is no option or no value of it, `forbidden` above the ceiling. */
export async function setConfigOption(
  session: Session,
  ceiling: Mode | undefined,
  model: string,
  chosen: { configId: string; value: string | boolean },
): Promise<void> {
  const { configId, value } = chosen
  switch (configId) {
    case 'mode':
      return session.setMode(parseParams(modeShape, value, 'value'), ceiling)
    case 'model':
      if (value === model) return
      throw new SandlotError('bad_request', `There is one model here, “${model}”.`)
    default:
      throw new SandlotError(
        'bad_request',
        `There is no option “${configId}”; the options are mode and model.`,
      )
  }
}
