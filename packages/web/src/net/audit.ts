/** The audit log and how long things are kept, for administrators. Failures are `ApiError`s. */
import { type AuditChains, auditChains, type AuditPage, auditPage } from '@sandlot/shared/admin/audit'
import {
  type RetentionDays,
  type RetentionPreview,
  retentionPreview,
  type RetentionView,
  retentionView,
} from '@sandlot/shared/admin/retention'
import { call } from './http.ts'

export interface AuditFilter {
  who: string
  text: string
  /** A kind; empty: all. */
  what: string
  /** Days as `2026-11-27`, of this browser's clock; empty: no end. */
  from: string
  to: string
}

export function fetchAudit(filter: AuditFilter, cursor?: string): Promise<AuditPage> {
  const query = queryOf(filter)
  if (cursor !== undefined) query.set('cursor', cursor)
  return call(auditPage, 'GET', `/api/admin/audit?${query}`)
}

export function auditExport(filter: AuditFilter, format: 'csv' | 'jsonl'): string {
  const query = queryOf(filter)
  query.set('format', format)
  return `/api/admin/audit/export?${query}`
}

export function checkAudit(): Promise<AuditChains> {
  return call(auditChains, 'GET', '/api/admin/audit/chains')
}

export function fetchRetention(): Promise<RetentionView> {
  return call(retentionView, 'GET', '/api/admin/retention')
}

export function putRetention(days: RetentionDays, revision: number): Promise<RetentionView> {
  return call(retentionView, 'PUT', '/api/admin/retention', { days, revision })
}

export function previewRetention(days: RetentionDays): Promise<RetentionPreview> {
  return call(retentionPreview, 'POST', '/api/admin/retention/preview', { days })
}

function queryOf({ who, text, what, from, to }: AuditFilter): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ who, text, what }))
    if (value.trim() !== '') query.set(name, value.trim())
  if (from !== '') query.set('from', String(new Date(`${from}T00:00:00`).getTime()))
  // The whole last day.
  if (to !== '') query.set('to', String(new Date(`${to}T23:59:59.999`).getTime()))
  return query
}
