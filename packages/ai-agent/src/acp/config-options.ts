/**
 * A session's config options: its mode (also as ACP's modes), its model, and the model's thought
 * level.
 */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/base/errors'
import { MODES, type Mode, isWithin, mode as modeShape } from '@sandlot/shared/chat/mode'
import { z } from 'zod'
import type { Session } from '../session/session.ts'
import { parseParams } from './errors.ts'

const MODE_NAMES: Record<Mode, { name: string; description: string }> = {
  manual: { name: 'Ask', description: 'Reading runs; everything else asks first.' },
  'auto-edit': { name: 'Auto-edit', description: 'Reading and editing files run; commands ask first.' },
  auto: {
    name: 'Auto',
    description: 'Commands run too where the sandbox reaches nothing; deleting what git lacks asks first.',
  },
  yolo: { name: 'Yolo', description: 'Everything runs without asking.' },
}

export function modesOf(session: Session, ceiling: Mode | undefined): SessionModeState {
  return {
    currentModeId: session.mode,
    availableModes: MODES.filter((mode) => isWithin(ceiling, mode)).map((id) => ({ id, ...MODE_NAMES[id] })),
  }
}

/** The value for the model's own default. */
const BY_ITSELF = 'default'

/** The complete list, with what is chosen. */
export function configOptionsOf(session: Session, ceiling: Mode | undefined): SessionConfigOption[] {
  const { all, chosen } = session.models
  const levels = all.find(({ name }) => name === chosen.model)?.thoughtLevels ?? []
  return [
    {
      id: 'mode',
      name: 'Mode',
      description: 'What runs without asking.',
      category: 'mode',
      type: 'select',
      currentValue: session.mode,
      options: MODES.filter((mode) => isWithin(ceiling, mode)).map((value) => ({
        value,
        ...MODE_NAMES[value],
      })),
    },
    {
      id: 'model',
      name: 'Model',
      description:
        all.length > 1 ? 'Asked from the next message on.' : 'Chosen by whoever runs this Sandlot.',
      category: 'model',
      type: 'select',
      currentValue: chosen.model,
      options: all.map(({ name }) => ({ value: name, name })),
    },
    ...(levels.length === 0 ? [] : [thoughtLevelOption(levels, chosen.thoughtLevel)]),
  ]
}

function thoughtLevelOption(levels: readonly string[], chosen: string | undefined): SessionConfigOption {
  return {
    id: 'thought_level',
    name: 'Thought level',
    description: 'How hard the model is told to think, from the next message on.',
    category: 'thought_level',
    type: 'select',
    currentValue: chosen ?? BY_ITSELF,
    options: [
      { value: BY_ITSELF, name: 'Default', description: 'As the model does by itself.' },
      ...levels.filter((level) => level !== BY_ITSELF).map((level) => ({ value: level, name: level })),
    ],
  }
}

/** Throws `bad_request` for what is no option or no value of it, `forbidden` above the ceiling. */
export async function setConfigOption(
  session: Session,
  ceiling: Mode | undefined,
  chosen: { configId: string; value: string | boolean },
): Promise<void> {
  const { configId, value } = chosen
  switch (configId) {
    case 'mode':
      return session.setMode(parseParams(modeShape, value, 'value'), ceiling)
    case 'model':
      return session.chooseModel({ model: parseParams(z.string(), value, 'value') })
    case 'thought_level': {
      const level = parseParams(z.string(), value, 'value')
      return session.chooseModel({ thoughtLevel: level === BY_ITSELF ? null : level })
    }
    default:
      throw new SandlotError(
        'bad_request',
        `There is no option “${configId}”; the options are mode, model and thought_level.`,
      )
  }
}
