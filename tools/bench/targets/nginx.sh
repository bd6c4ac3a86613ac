#!/bin/sh
# nginx as a plain reverse proxy: one worker, keep-alive upstream, unbuffered. About the least a
# proxy can cost.
mkdir -p "$STATE/tmp"
cat > "$STATE/nginx.conf" <<CONF
worker_processes 1; daemon off; pid $STATE/pid; error_log stderr crit;
events { worker_connections 8192; multi_accept on; }
http {
  access_log off; client_body_temp_path $STATE/tmp; proxy_temp_path $STATE/tmp;
  fastcgi_temp_path $STATE/tmp; uwsgi_temp_path $STATE/tmp; scgi_temp_path $STATE/tmp;
  keepalive_requests 10000000; keepalive_timeout 600s; tcp_nodelay on; client_body_buffer_size 64k;
  upstream mock {
    server 127.0.0.1:$UPSTREAM;
    keepalive 2048; keepalive_requests 10000000; keepalive_timeout 600s;
  }
  server {
    listen 127.0.0.1:$PORT backlog=4096;
    location / {
      proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 300s;
    }
  }
}
CONF
PATH="$PATH:/usr/sbin:/sbin"
exec nginx -p "$STATE" -c "$STATE/nginx.conf"
