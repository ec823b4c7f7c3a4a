/*
 * The service worker: shows notices that the service pushes, and opens their chats. Where the page cannot be loaded it
 * says so; that page is all that it keeps.
 */

const OFFLINE = '/offline.html'

self.addEventListener('install', (event) => {
  event.waitUntil(keepOffline())
  // Requests of the page never wait for the worker: sent while the page closes, they would be lost.
  event.addRoutes?.({ condition: { urlPattern: '/api/*' }, source: 'network' })
  self.skipWaiting()
})
self.addEventListener('fetch', (event) => {
  if (event.request.destination === 'document') event.respondWith(load(event.request))
})
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('push', (event) => event.waitUntil(show(event.data)))
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(event.notification.data?.url))
})

async function keepOffline() {
  const cache = await caches.open('offline')
  await cache.add(new Request(OFFLINE, { cache: 'reload' }))
}

async function load(request) {
  try {
    return await fetch(request)
  } catch (error) {
    const offline = await caches.match(OFFLINE)
    if (offline === undefined) throw error
    return offline
  }
}

/* Browsers want something shown for every push, so one that cannot be read says that there is something. */
async function show(data) {
  const { title = 'Sandlot has something for you', body = '', tag = 'sandlot', url = '/' } = messageOf(data)
  // A newer notification of a chat replaces the older one of the same tag.
  await self.registration.showNotification(title, { body, tag, icon: '/favicon.svg', data: { url } })
}

function messageOf(data) {
  try {
    return data?.json() ?? {}
  } catch {
    return {}
  }
}

async function open(path = '/') {
  const url = new URL(path, self.location.origin)
  if (url.origin !== self.location.origin) return
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const there = pages.find((page) => new URL(page.url).pathname === url.pathname)
  // Another page of ours stays as it is: a message may be half written in it.
  await (there === undefined ? self.clients.openWindow(url.href) : there.focus())
}
