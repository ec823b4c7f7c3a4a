/** Limits of use for everybody; 0 is no limit. Administrators change those of teams and people. */
import { type Setting, agent, decimal, whole } from './setting.ts'

const DOLLARS = decimal('5 or 0.50')

export const LIMIT_SETTINGS = {
  SANDLOT_MAX_TURNS: agent('model answers per prompt', whole(1, 1_000), '100'),
  SANDLOT_MAX_COST: agent('US dollars per prompt, where the model’s price is known', DOLLARS, '0'),
  SANDLOT_MAX_PROMPT_SECONDS: agent('time per prompt, waiting included', whole(0, 30 * 86_400), '0'),
  SANDLOT_MAX_TOKENS_PER_DAY: agent('tokens per user and day', whole(0, 10 ** 12), '0'),
  SANDLOT_MAX_COST_PER_DAY: agent('US dollars per user and day', DOLLARS, '0'),
  SANDLOT_MAX_TOKENS_PER_MONTH: agent('tokens per user and month', whole(0, 10 ** 13), '0'),
  SANDLOT_MAX_COST_PER_MONTH: agent('US dollars per user and month', DOLLARS, '0'),
  SANDLOT_TOTAL_TOKENS_PER_DAY: agent('tokens of all users per day', whole(0, 10 ** 15), '0'),
  SANDLOT_TOTAL_COST_PER_DAY: agent('US dollars of all users per day', DOLLARS, '0'),
  SANDLOT_TOTAL_TOKENS_PER_MONTH: agent('tokens of all users per month', whole(0, 10 ** 15), '0'),
  SANDLOT_TOTAL_COST_PER_MONTH: agent('US dollars of all users per month', DOLLARS, '0'),
  SANDLOT_BUDGET_WARNING: agent(
    'percent of a daily or monthly limit at which people are warned; 0 = never',
    whole(0, 100),
    '80',
  ),
} as const satisfies Record<string, Setting>
