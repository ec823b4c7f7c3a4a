/** File actions: create, move, delete, each with an undo where there is one. */
import { messageOf } from '@sandlot/shared/base/errors'
import { useState } from 'react'
import { call } from '../../net/call.ts'
import { ApiError } from '../../net/http.ts'
import { showToast } from '../../ui/toasts.tsx'
import { below, folderOf, nameOf } from '../../state/dropped.ts'
import { namesOf } from './tree-view.tsx'
import { refreshTree, reveal, toggleFolder } from './use-tree.ts'

/** `onMade` gets the path of what was made, under a name that it is to lose. */
export function useFileActions(onMade: (path: string) => void) {
  const [problem, setProblem] = useState<string | null>(null)
  const [forever, setForever] = useState<readonly string[] | null>(null)

  /** Shows what went wrong, and looks again either way. */
  const attempt: Attempt = async (work) => {
    setProblem(null)
    try {
      await work()
    } catch (error) {
      setProblem(messageOf(error))
    }
    await refreshTree()
  }
  const make = (folder: string, name: string, put: (path: string) => Promise<unknown>) =>
    attempt(async () => {
      if (folder !== '') toggleFolder(folder, true)
      const path = await firstFree(below(folder, name), put)
      await reveal(path)
      onMade(path)
    })
  const move = (paths: readonly string[], folder: string) => attempt(() => moveInto(folder, paths, attempt))
  const remove = (paths: readonly string[]) => attempt(() => moveToTrash(paths, attempt, setForever))
  const rename = (path: string, name: string) =>
    attempt(async () => {
      const to = below(folderOf(path), name)
      await call('moveFile', { body: { path, to } })
      await reveal(to)
    })
  const removeForGood = (paths: readonly string[]) =>
    attempt(async () => {
      setForever(null)
      for (const path of paths) await call('removeFile', { query: { path, forever: true } })
    })
  return { problem, setProblem, forever, setForever, make, move, rename, remove, removeForGood }
}

type Attempt = (work: () => Promise<void>) => Promise<void>

function showUndo(done: string, undo: () => Promise<void>, attempt: Attempt): void {
  showToast(done, { action: { label: 'Undo', onClick: () => void attempt(undo) } })
}

async function moveInto(folder: string, paths: readonly string[], attempt: Attempt): Promise<void> {
  const back: { path: string; to: string }[] = []
  try {
    for (const path of paths) {
      const to = below(folder, nameOf(path))
      if (to === path) continue
      await call('moveFile', { body: { path, to } })
      back.unshift({ path: to, to: path })
    }
  } finally {
    if (back.length > 0)
      showUndo(
        `${namesOf(back.map(({ to }) => to))} moved.`,
        async () => {
          for (const one of back) await call('moveFile', { body: { path: one.path, to: one.to } })
        },
        attempt,
      )
  }
}

/** `onNoRoom` gets the paths for which the trash has no room. */
async function moveToTrash(
  paths: readonly string[],
  attempt: Attempt,
  onNoRoom: (paths: readonly string[]) => void,
): Promise<void> {
  const ids: string[] = []
  const left = [...paths]
  try {
    for (const path of paths) {
      const { id } = await call('removeFile', { query: { path } })
      if (id !== null) ids.push(id)
      left.shift()
    }
  } catch (error) {
    // A full disk has no room for the trash either.
    if (!(error instanceof ApiError) || error.code !== 'too_large') throw error
    onNoRoom(left)
  } finally {
    const removed = paths.slice(0, paths.length - left.length)
    if (removed.length > 0)
      showUndo(
        `${namesOf(removed)} deleted.`,
        async () => {
          for (const id of ids.toReversed())
            await reveal((await call('restoreFile', { params: { id } })).path)
        },
        attempt,
      )
  }
}

/** `new file.txt`, `new file (2).txt` …, whichever is not there. */
async function firstFree(path: string, put: (path: string) => Promise<unknown>): Promise<string> {
  const [, stem = path, ending = ''] = /^(.*[^/])(\.[^./]+)$/.exec(path) ?? []
  for (let n = 1; ; n++) {
    const place = n === 1 ? path : `${stem} (${n})${ending}`
    try {
      await put(place)
      return place
    } catch (error) {
      if (n === 50 || !(error instanceof ApiError) || error.code !== 'conflict') throw error
    }
  }
}
