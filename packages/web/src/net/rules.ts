/** One's own rules, as functions over HTTP. Failures are `ApiError`s. */
import { rule, type Rule } from '@sandlot/shared/rules'
import {
  type NewRule,
  type RuleList,
  type RulePreview,
  ruleList,
  rulePreview,
} from '@sandlot/shared/rules-api'
import { z } from 'zod'
import { call } from './http.ts'

export function fetchRules(): Promise<RuleList> {
  return call(ruleList, 'GET', '/api/rules')
}

export function addRule(made: NewRule): Promise<Rule> {
  return call(rule, 'POST', '/api/rules', made)
}

export function previewRule(made: NewRule): Promise<RulePreview> {
  return call(rulePreview, 'POST', '/api/rules/preview', made)
}

export async function revokeRule(id: string): Promise<void> {
  await call(z.unknown(), 'DELETE', `/api/rules/${encodeURIComponent(id)}`)
}
