"""Middleware that reports page views, requests and errors of web applications."""

from headrace_client.web.asgi import HeadraceASGI
from headrace_client.web.request import Request, RequestOptions
from headrace_client.web.wsgi import HeadraceWSGI

__all__ = ["HeadraceASGI", "HeadraceWSGI", "Request", "RequestOptions"]
