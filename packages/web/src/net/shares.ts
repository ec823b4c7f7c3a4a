/** Sharing of chats, as functions over HTTP. Failures are `ApiError`s. */
import {
  type NewComment,
  type NewShare,
  type NewSnapshot,
  type ShareList,
  type Snapshot,
  share,
  shareList,
  snapshot,
  snapshotList,
} from '@sandlot/shared/chat/shares'
import { type Directory, type SnapshotView, directory, snapshotView } from '@sandlot/shared/chat/shares-api'
import { z } from 'zod'
import { call } from './http.ts'

const ofSession = (sessionId: string, what: string) =>
  `/api/sessions/${encodeURIComponent(sessionId)}/${what}`

export async function fetchShares(sessionId: string): Promise<ShareList['shares']> {
  return (await call(shareList, 'GET', ofSession(sessionId, 'shares'))).shares
}

/** Replaces one of the same person or team. */
export async function putShare(sessionId: string, made: NewShare): Promise<void> {
  await call(share, 'POST', ofSession(sessionId, 'shares'), made)
}

export async function revokeShare(sessionId: string, id: string): Promise<void> {
  await call(z.unknown(), 'DELETE', ofSession(sessionId, `shares/${encodeURIComponent(id)}`))
}

/** For people only; the transcript shows it when it is stored. */
export async function sendComment(sessionId: string, comment: NewComment): Promise<void> {
  await call(z.unknown(), 'POST', ofSession(sessionId, 'comments'), comment)
}

/** People and teams with this in their names. */
export function findPeople(query: string): Promise<Directory> {
  return call(directory, 'GET', `/api/people?query=${encodeURIComponent(query)}`)
}

export async function fetchSnapshots(sessionId: string): Promise<Snapshot[]> {
  return (await call(snapshotList, 'GET', ofSession(sessionId, 'snapshots'))).snapshots
}

export function makeSnapshot(sessionId: string, made: NewSnapshot): Promise<Snapshot> {
  return call(snapshot, 'POST', ofSession(sessionId, 'snapshots'), made)
}

export async function revokeSnapshot(sessionId: string, id: string): Promise<void> {
  await call(z.unknown(), 'DELETE', ofSession(sessionId, `snapshots/${encodeURIComponent(id)}`))
}

/** All pages of it as one. */
export async function fetchSnapshot(id: string): Promise<SnapshotView> {
  const page = (after: number) =>
    call(snapshotView, 'GET', `/api/snapshots/${encodeURIComponent(id)}?after=${after}`)
  let view = await page(0)
  while (view.next !== null) {
    const more = await page(view.next)
    view = { ...more, events: [...view.events, ...more.events] }
  }
  return view
}
