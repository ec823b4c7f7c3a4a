/** A click on a notification: the service worker's own file, with and without open pages. */
import { readFileSync } from 'node:fs'
import { createContext, runInContext } from 'node:vm'
import { expect, test } from 'vitest'

const ORIGIN = 'https://chat.example.org'
const CODE = readFileSync(`${import.meta.dirname}/../../public/service-worker.js`, 'utf8')

/** The actions after a click on a notification with this address, while these pages are open. */
async function clicked(url: string | undefined, pages: readonly string[]): Promise<string[]> {
  const done: string[] = []
  const listeners = new Map<string, (event: object) => void>()
  const windows = pages.map((path) => ({
    url: ORIGIN + path,
    focus: async () => void done.push(`focus ${path}`),
  }))
  const self = {
    location: { origin: ORIGIN },
    addEventListener: (type: string, listener: (event: object) => void) => listeners.set(type, listener),
    clients: {
      matchAll: async () => windows,
      openWindow: async (href: string) => void done.push(`open ${href}`),
    },
  }
  runInContext(CODE, createContext({ self, URL }))
  const waits: Promise<unknown>[] = []
  listeners.get('notificationclick')?.({
    notification: { close: () => done.push('close'), data: url === undefined ? undefined : { url } },
    waitUntil: (work: Promise<unknown>) => waits.push(work),
  })
  await Promise.all(waits)
  return done
}

test('a click closes the notice and goes to the page of its chat, which is opened where there is none', async () => {
  expect(await clicked('/s/s_1', ['/', '/s/s_1'])).toEqual(['close', 'focus /s/s_1'])
  expect(await clicked('/s/s_1#k', ['/s/s_1?x=1'])).toEqual(['close', 'focus /s/s_1?x=1'])
  expect(await clicked('/s/s_1', ['/', '/s/s_2'])).toEqual(['close', `open ${ORIGIN}/s/s_1`])
  expect(await clicked(undefined, [])).toEqual(['close', `open ${ORIGIN}/`])
})

test('a click leads to no other origin', async () => {
  expect(await clicked('https://evil.example/s/s_1', [])).toEqual(['close'])
  expect(await clicked('//evil.example', ['/'])).toEqual(['close'])
})
