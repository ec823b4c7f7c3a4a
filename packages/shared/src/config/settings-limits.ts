/** Limits of use for everybody; 0 is no limit. Administrators change those of teams and people. */
import { type Setting, decimal, whole } from './setting.ts'

const DOLLARS = decimal('5 or 0.50')

export const LIMIT_SETTINGS = {
  SANDLOT_MAX_TURNS: {
    meaning: 'model answers per prompt',
    schema: whole(1, 1_000),
    default: '100',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_COST: {
    meaning: 'US dollars per prompt, where the model’s price is known',
    schema: DOLLARS,
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_PROMPT_SECONDS: {
    meaning: 'time per prompt, waiting included',
    schema: whole(0, 30 * 86_400),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_TOKENS_PER_DAY: {
    meaning: 'tokens per user and day',
    schema: whole(0, 10 ** 12),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_COST_PER_DAY: {
    meaning: 'US dollars per user and day',
    schema: DOLLARS,
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_TOKENS_PER_MONTH: {
    meaning: 'tokens per user and month',
    schema: whole(0, 10 ** 13),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_COST_PER_MONTH: {
    meaning: 'US dollars per user and month',
    schema: DOLLARS,
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_TOTAL_TOKENS_PER_DAY: {
    meaning: 'tokens of all users per day',
    schema: whole(0, 10 ** 15),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_TOTAL_COST_PER_DAY: {
    meaning: 'US dollars of all users per day',
    schema: DOLLARS,
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_TOTAL_TOKENS_PER_MONTH: {
    meaning: 'tokens of all users per month',
    schema: whole(0, 10 ** 15),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_TOTAL_COST_PER_MONTH: {
    meaning: 'US dollars of all users per month',
    schema: DOLLARS,
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_BUDGET_WARNING: {
    meaning: 'percent of a daily or monthly limit at which people are warned; 0 = never',
    schema: whole(0, 100),
    default: '80',
    processes: ['ai-agent'],
  },
} as const satisfies Record<string, Setting>
